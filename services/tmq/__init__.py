"""The TMQ edge: transactional message queue over TCP (protos/tmq.md), both dialects.

A connection is a `session`, which the kit calls; its parts share a `conversation`: the kit's, with its wire and replies
in order, and what TMQ answers. The kit's `inflow` makes events of the input and lets wait what must wait; each event
goes to the part that turns it into verbs of the store and their outcomes into replies: `enqueue`, `dequeue`, `queues`
(OPEN, CLOSE, CREATE, DELETE, SELECT), and for TS, TE and TA one of two kinds of `transactions`: atomic (`transaction`)
or `original`. `unsettled` is what the next request settles. `service` is what connections share, `edge` is how the kit
starts it. It must not know any other edge, nor speak to Redis.
"""

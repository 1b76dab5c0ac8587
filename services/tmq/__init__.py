"""The TMQ edge: transactional message queue over TCP (protos/tmq.md), both dialects.

`session` turns the protocol's events into verbs of the store and their outcomes into replies, `transaction` is what a
connection has buffered and leased until TE, `answers` keeps replies in order, `service` is what connections share,
`edge` is how the kit starts it. It must not know any other edge, nor speak to Redis.
"""

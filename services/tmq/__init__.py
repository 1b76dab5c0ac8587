"""The TMQ edge: transactional message queue over TCP (protos/tmq.md), both dialects.

A `session` passes each event to the part that handles it: `enqueue`, `dequeue`, `queues` (OPEN, CLOSE, CREATE, DELETE,
SELECT), or one of two kinds of `transactions` for TS, TE and TA: atomic (`transaction`) or `original`. The parts share
a `conversation`, the connections of a process share a `service`. It must not know any other edge, nor speak to Redis.
"""

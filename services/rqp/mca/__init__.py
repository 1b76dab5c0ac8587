"""The receiving and sending agents of RQP/MCA (protos/rqp_mca.md).

Receiving (2): a `session` for each connection, with `inserts` for MSG_DATA, `queue_requests` for the other two messages
and `assignments` for reserved queues; `receiver` is what they share.

Sending (3): a `sending_agent` for each transmission queue that this process owns. It runs the protocol's state machine,
leases messages through its `prefetch`, and has a `channel` to each peer it asked; `directory` knows the peers; `sender`
is what the agents share.
"""

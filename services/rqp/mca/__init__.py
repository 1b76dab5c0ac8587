"""RQP/MCA as agents that run (protos/rqp_mca.md): both sides of it.

Receiving (2): a `session` for each connection, with `inserts` for MSG_DATA, `questions` for the other two, and
`assignments` for what was reserved; `receiver` is what they share.

Sending (3): a `carrier` for each transmission queue that this process owns. It runs the machine of the protocol, keeps
its `line` of messages and a `channel` to each peer that was asked; `directory` knows the peers; `sender` is shared.
"""

"""Links between stores: each takes the messages that originate at the others (pubsub.md 4.3-4.6).

A connection carries a link in both directions, from either side. `session` is the kit's session: it greets, and
passes input to two parts, each with a task. The `follower` announces which messages are held here and puts missing ones
into the log, each with its origin. The `sender` reads the local log and sends what the neighbour does not hold.
`neighbours` dials the configured neighbours. `hub` is what all links of a process share, `held` are sets of message
numbers by origin, `trace_propagation` records the messages that cross links.
"""

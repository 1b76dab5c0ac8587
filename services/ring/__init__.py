"""The ring edge: queues for the clients of a ring's node, and the node itself (protos/ring.md).

`service` is what both parts share in a process, `edge` is how the kit starts them. `clients` serves applications on
the client port (5.2). `node` is a node of a ring: it finds others, keeps links with two of them, and carries what goes
around. A queue that is not in our store is asked for around the ring: `asking` is how one part asks the other.
"""

"""The ring edge: the client port of a ring node, and the node itself (protos/ring.md).

`service` holds what both parts share in a process; `edge` is what the kit starts. `clients` serves applications on the
client port (5.2). `node` is a node of a ring: it discovers other nodes, keeps links to two of them and forwards
messages. Requests for queues that are not in the local store go around the ring: `remote_queues` is the interface for
that.
"""

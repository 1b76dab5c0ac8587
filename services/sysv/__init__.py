"""The System V bridge: carry messages between System V queues of this machine and Penstock queues (docs/sysv.md).

`settings` map keys to queues, `kernel` calls the kernel. `outbound` carries messages of local programs into Penstock:
`journal` keeps them safe, `places` finds their queue, `claim` excludes other bridges. `inbound` carries messages of a
Penstock queue into a local one. `loops` rejects mappings that form a loop. `bridge` runs all mappings, `process` is the
process of `penstock sysv`.

It is not an edge, as it accepts no connections. It must not know any protocol except the T_MSG of RQP/cast.
"""

"""The System V bridge: Unix message queues of this machine as end points of Penstock queues (docs/sysv.md).

`settings` say which key is joined with which queue. `kernel` asks the kernel about local queues. `outbound` carries
what local programs send into Penstock, by way of a `journal` that outlives the process, to the queue that `places`
finds, under a `claim` that no other bridge has; `inbound` carries messages of a Penstock queue into a local one.
`loops` refuses mappings that would go round for ever. `bridge` runs all mappings, `process` is what `penstock sysv`
starts.

It is no edge: nobody connects to it, and it has one namespace of local queues. It must not know any protocol but the
T_MSG of RQP/cast.
"""

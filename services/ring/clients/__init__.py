"""The client port: applications that create, fill, empty and destroy queues (ring.md 5.2).

A connection is a `session`, which the kit calls; its parts share a `conversation`. The kit's inflow makes events of the
input, here one that counts who holds it up (`holding`). Each event goes to the part that turns it into verbs of the
store, or into questions to the ring, and their outcomes into replies: `pushes`, `pulls`, `queues` (create_queue,
destroy_queue). Requests name their queue each time: `seeking` finds it. `unsettled` is what the next request settles,
`words` what an ERROR says.
"""

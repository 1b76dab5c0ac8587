"""The client port: applications create, push to, pull from and destroy queues (ring.md 5.2).

A connection is a `session`, which the kit calls; its parts share a `conversation` and an `inflow`, which turns input
into events. Each event goes to the part that makes store operations or requests to the ring of it and replies with
their outcome: `pushes`, `pulls`, `queues` (create_queue, destroy_queue). Requests name their queue each time:
`queue_lookup` finds it.
"""

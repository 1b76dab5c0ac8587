"""The inbox and the outbox of a group: queues of the store that the ring fills and empties (ring.md 5.5).

It knows no link.
"""

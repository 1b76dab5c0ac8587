"""The inbox and the outbox of a group: queues that the ring fills and empties (ring.md 5.5).

This package knows nothing of links.
"""

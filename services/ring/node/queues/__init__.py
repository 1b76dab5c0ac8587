"""Queue operations around the ring: those of local clients, and those served for other nodes (ring.md 5.3, 5.4).

This package knows nothing of links.
"""

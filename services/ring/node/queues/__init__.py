"""Operations on queues that go around the ring: asked by our clients, and served for other nodes (ring.md 5.3, 5.4).

It knows no link.
"""

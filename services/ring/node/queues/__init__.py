"""Operations on queues that go around the ring: asked by clients of this node, and served for others (ring.md 5.3, 5.4).

It knows no link.
"""

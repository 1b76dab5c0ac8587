"""A node of a ring: it discovers others, keeps links to two of them and forwards messages (ring.md 2 to 5)."""

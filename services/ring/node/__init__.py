"""A node of a ring: finds others, keeps links with two of them, and carries what goes around (ring.md 2 to 5)."""

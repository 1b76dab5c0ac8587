"""The ring: nodes that find each other, close a ring, and carry queue operations around it (ring.md)."""

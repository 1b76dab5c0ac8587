"""Links to the predecessor and the successor, and the node's timer (ring.md 2 to 4).

This package carries USER messages without interpreting them.
"""

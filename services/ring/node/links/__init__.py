"""Links to the predecessor and to the successor, and the timer of the node (ring.md 2 to 4).

It carries USER messages and does not know what they mean.
"""

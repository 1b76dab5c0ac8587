"""Messages for the successor, in a store queue that one process owns at a time (ring.md 2.2, 4.5).

This package does not interpret the messages.
"""

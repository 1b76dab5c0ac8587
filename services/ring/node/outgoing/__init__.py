"""What waits for the successor, in a queue of the store that one process owns (ring.md 2.2, 4.5).

It knows messages as octets for the successor, and not what they ask.
"""

"""Discovery: send and receive beacons, and report addresses that cannot be reached (ring.md 3).

This package does not use open links.
"""

"""Serve, keep or forward each USER message of the predecessor (ring.md 5.3 to 5.7).

This package knows nothing of links.
"""

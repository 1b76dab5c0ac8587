"""What becomes of each USER message of the predecessor: served, kept or passed on (ring.md 5.3 to 5.7).

It knows no link.
"""

"""Nodes find each other: beacons are sent and heard, and addresses that cannot be reached are reported (ring.md 3).

It knows no link that is open.
"""

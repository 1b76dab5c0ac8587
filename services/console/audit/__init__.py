"""The audit log: what is written down of each change, and by whom.

It does not decide who may do what.
"""

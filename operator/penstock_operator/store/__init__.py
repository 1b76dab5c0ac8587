"""The store as the operator watches it: whether it can be used, whose data it holds, and what rings left behind.

It changes nothing in the store.
"""

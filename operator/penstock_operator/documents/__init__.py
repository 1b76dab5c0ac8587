"""Custom resources as documents: their definitions and schemas, what they declare, and the conditions of their status.

It reads and writes documents only, and asks neither the API server nor the store.
"""

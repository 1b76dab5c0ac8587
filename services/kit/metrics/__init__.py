"""Metrics of a process and what they are called, with the figures of queues.

It counts what it is told: it asks neither the store nor connections.
"""

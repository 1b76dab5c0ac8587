"""Metrics of the operator and the figures of queues that it exports.

It counts what others report.
"""

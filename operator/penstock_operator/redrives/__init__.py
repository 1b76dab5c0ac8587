"""Redrive resources bring dead letters back, in steps, and report how far they are.

It knows queues only as the place where letters come from and go to.
"""

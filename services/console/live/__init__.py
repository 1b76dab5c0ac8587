"""The live view: queues are polled while somebody watches, and changes sent to whoever does.

It knows no request.
"""

"""The live view: queues are polled while clients watch, and changes are sent to them.

It knows no request.
"""

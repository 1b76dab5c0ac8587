"""What a protocol's session is made of: input in order, replies in order, back-pressure and a graceful close.

It computes with what the connection hands in, and knows neither sockets nor timers.
"""

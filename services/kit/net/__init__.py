"""Connections: listeners, diallers, TLS, limits, timers and the memory that they may hold.

It knows the session of a connection as an interface only, and no protocol.
"""

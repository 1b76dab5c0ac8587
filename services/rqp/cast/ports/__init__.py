"""Ports and sockets that both agents use: connections of one message each, datagrams, places (rqp_cast.md 1).

It does not know what is said.
"""

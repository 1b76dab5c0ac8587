"""Ports and sockets of both agents: single-message connections, datagrams, session slots (rqp_cast.md 1)."""

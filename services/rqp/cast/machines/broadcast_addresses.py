"""Recognize broadcast, multicast and wildcard addresses: RQP/cast asks single machines (rqp_cast.md 1.1)."""

from __future__ import annotations

import errno
import re
import socket

from services.store.model import NOT_ONE_MACHINE

DISCARD_PORT = 9  # nothing is sent to it: connecting a UDP socket only looks up the route
INSTEAD = "list each machine by its own address"


def broadcast_problem(address: str) -> str:
    """Return what is wrong with an IPv4 address that does not belong to one machine, and what to do; else ''.

    The kernel knows which addresses are a network's broadcast address: that depends on the current interfaces.
    """
    if re.match(NOT_ONE_MACHINE, address):
        return f"{address} is a broadcast, multicast or wildcard address: {INSTEAD}"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, DISCARD_PORT))
        except OSError as error:
            if error.errno == errno.EACCES:  # it would need SO_BROADCAST
                return f"{address} is a broadcast address: {INSTEAD}"
    return ""

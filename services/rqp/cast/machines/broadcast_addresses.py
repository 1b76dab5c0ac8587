"""Addresses that are not of one machine, to which RQP/cast sends no question (rqp_cast.md 1.1)."""

from __future__ import annotations

import errno
import re
import socket

from services.store.model import NOT_ONE_MACHINE

DISCARD_PORT = 9  # nothing is sent there: only the way to an address is asked for
INSTEAD = "list each machine by its own address"


def address_of_many(address: str) -> str:
    """Return what an IPv4 address is, and what to do, if it is not of one machine; else ''.

    Whether it is the broadcast address of a network, the kernel knows: it depends on the interfaces there are now.
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

"""Receive questions as datagrams, with the time since their arrival (rqp_cast.md 1.1)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

from services.kit.config import SettingsError
from services.store.model import Stamps

BATCH = 64  # datagrams read before other work gets a turn
DATAGRAM_BYTES = 64  # longer datagrams are cut off: they are no questions
RECEIVE_BUFFER = 1 << 20  # octets

SO_TIMESTAMPNS = 35  # Linux, asm-generic/socket.h: datagrams come with the time of their arrival
_TIMESPEC = struct.Struct("@qq")  # s, ns since 1970
_ROOM = socket.CMSG_SPACE(_TIMESPEC.size)

Datagram = tuple[bytes, str, float]  # octets, source address, seconds since its arrival


def bound(host: str, port: int, shared: bool) -> socket.socket:
    """Return a bound UDP socket. shared: other workers bind the same port. Raises SettingsError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise SettingsError([f"cannot listen on {host} UDP port {port}: {error.strerror}"]) from None
    return sock


def received(sock: socket.socket, stamps: Stamps) -> Iterator[Datagram]:
    """Yield the datagrams that have arrived, at most `BATCH`."""
    for _ in range(BATCH):
        try:
            data, ancillary, _, place = sock.recvmsg(DATAGRAM_BYTES, _ROOM)
        except BlockingIOError:
            stamps.settle()
            return
        except OSError:  # an ICMP error caused by an earlier datagram
            continue
        yield data, place[0], _age_s(ancillary, stamps)


def _age_s(ancillary: list[tuple[int, int, bytes]], stamps: Stamps) -> float:
    """Return how long a datagram waited in the kernel; 0 if the kernel does not say."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS) and len(data) == _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack(data)
            return stamps.age_s(seconds + nanoseconds / 1e9)
    return 0.0

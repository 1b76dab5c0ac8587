"""Questions as the network brings them: datagrams, and how long ago they came (rqp_cast.md 1.1)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

from services.kit.config import SettingsError
from services.store.model import Stamps

BATCH = 64  # datagrams read in a row, before others get a turn
DATAGRAM_BYTES = 64  # of a longer one the rest is cut off: it is no question
RECEIVE_BUFFER = 1 << 20  # what the kernel keeps of questions meanwhile

SO_TIMESTAMPNS = 35  # of Linux, asm-generic/socket.h: each datagram comes with the time of its arrival
_TIMESPEC = struct.Struct("@qq")  # s, ns since 1970
_ROOM = socket.CMSG_SPACE(_TIMESPEC.size)

Datagram = tuple[bytes, str, float]  # its octets, who sent it, s since it came


def bound(host: str, port: int, shared: bool) -> socket.socket:
    """shared: other workers hear on the same port. Raises SettingsError if it cannot be had."""
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
        raise SettingsError([f"cannot hear on {host} UDP port {port}: {error.strerror}"]) from None
    return sock


def received(sock: socket.socket, stamps: Stamps) -> Iterator[Datagram]:
    """Those that are there, `BATCH` at most."""
    for _ in range(BATCH):
        try:
            data, ancillary, _, place = sock.recvmsg(DATAGRAM_BYTES, _ROOM)
        except BlockingIOError:
            stamps.settle()
            return
        except OSError:  # an answer of the network to something that we sent: none of ours
            continue
        yield data, place[0], _age_s(ancillary, stamps)


def _age_s(ancillary: list[tuple[int, int, bytes]], stamps: Stamps) -> float:
    """While our process stood still, it waited in the kernel. 0 where that does not tell."""
    for level, kind, told in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS) and len(told) == _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack(told)
            return stamps.age_s(seconds + nanoseconds / 1e9)
    return 0.0

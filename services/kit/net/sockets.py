"""Set TCP options and read what the kernel knows about a connection."""

from __future__ import annotations

import fcntl
import resource
import socket
import struct
import termios

KEEPALIVE_IDLE_S = 60
KEEPALIVE_INTERVAL_S = 10
KEEPALIVE_PROBES = 8

_INT = struct.Struct("i")
_U64 = struct.Struct("Q")
_ZERO = _INT.pack(0)
_LINGER_NONE = struct.pack("ii", 1, 0)  # on, 0 s: close() resets

# struct tcp_info, linux/tcp.h: u8 tcpi_state first; u64 tcpi_bytes_acked at offset 120 since Linux 4.1
_BYTES_ACKED_AT = 120
_STATES_THAT_CARRY_DATA = (1, 8)  # TCP_ESTABLISHED, TCP_CLOSE_WAIT
_TCP_INFO: int | None = getattr(socket, "TCP_INFO", None)
_TCP_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


def configure(sock: socket.socket) -> None:
    """Switch off Nagle's delay; detect a dead peer by keepalive, after 60 + 8 x 10 s."""
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_S),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
    ):
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def acknowledge(sock: socket.socket) -> None:
    """Acknowledge input at once: until then a peer with Nagle's algorithm holds the rest back (TCP_QUICKACK)."""
    if _TCP_QUICKACK is not None:
        sock.setsockopt(socket.IPPROTO_TCP, _TCP_QUICKACK, 1)


def reset_on_close(sock: socket.socket) -> None:
    """Make the next close() send a reset instead of a FIN."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)


def unread_bytes(sock: socket.socket) -> int:
    """Return the bytes in the receive buffer."""
    return int(_INT.unpack(fcntl.ioctl(sock.fileno(), termios.FIONREAD, _ZERO))[0])


def unacked_bytes(sock: socket.socket) -> int:
    """Return the bytes in the kernel that the peer's TCP has not acknowledged (Linux: SIOCOUTQ)."""
    return int(_INT.unpack(fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, _ZERO))[0])


def carries_data(sock: socket.socket) -> bool:
    """Return False once the connection was reset or timed out, even after the peer's FIN."""
    if _TCP_INFO is None:
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    return sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 1)[0] in _STATES_THAT_CARRY_DATA


def acked_mark(sock: socket.socket) -> int:
    """Return a number that changes exactly when the peer's TCP acknowledges bytes."""
    if _TCP_INFO is not None:
        info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _BYTES_ACKED_AT + _U64.size)
        if len(info) == _BYTES_ACKED_AT + _U64.size:
            return int(_U64.unpack_from(info, _BYTES_ACKED_AT)[0])
    return -unacked_bytes(sock)


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one, and return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):  # macOS reports "unlimited" and then refuses it
            return soft
    return hard

"""Recognize a PROXY header or TLS on a port of RQP/cast, so that the refusal names it."""

from __future__ import annotations

from typing import Generic, TypeVar

from protos.rqp_cast import MessageReader
from protos.types import PeerError
from services.kit.net import Refusal, begins_tls, proxy_fault, proxy_version

TLS_FAULT = "the connection begins with TLS, which RQP/cast does not support: switch TLS off in the client"
WRONG_PROTOCOL = frozenset({Refusal.PROXY_HEADER.value, Refusal.TLS_AT_A_PLAIN_PORT.value})

MessageT = TypeVar("MessageT")


def check_proxy(first: bytes) -> None:
    """Raise PeerError if a connection begins with a PROXY protocol header."""
    if (version := proxy_version(first)) is not None:
        raise PeerError(Refusal.PROXY_HEADER.value, proxy_fault(version))


class DiagnosingReader(Generic[MessageT]):
    """Reads the one message of a connection. Raises a specific PeerError for a PROXY header or TLS in its place.

    A message begins with an address and may look like a ClientHello, so it counts as TLS only if it is malformed or
    followed by more octets.
    """

    __slots__ = ("_first", "_reader")

    def __init__(self, reader: MessageReader[MessageT]) -> None:
        self._reader = reader
        self._first = b""

    @property
    def excess(self) -> int:
        """Octets after the message."""
        return self._reader.excess

    def receive(self, data: bytes) -> MessageT | None:
        """Return the message, once, when `data` completes it."""
        if not self._first:
            self._first = data
            check_proxy(data)
        try:
            message = self._reader.receive(data)
        except PeerError:
            self._check_tls()
            raise
        if self._reader.excess:
            self._check_tls()
        return message

    def receive_eof(self) -> None:
        """Raise PeerError if the connection ends within the message."""
        self._reader.receive_eof()

    def _check_tls(self) -> None:
        if begins_tls(self._first):
            raise PeerError(Refusal.TLS_AT_A_PLAIN_PORT.value, TLS_FAULT) from None

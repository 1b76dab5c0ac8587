"""A TLS client without asyncio."""

from __future__ import annotations

import socket
import ssl

from tests.kit.authority import Authority
from tests.kit.harness import PATIENCE_S


class BareClient:
    """A TLS client on a blocking socket, so that a test can send arbitrary octets beside TLS."""

    def __init__(self, authority: Authority, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), PATIENCE_S)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = authority.client().wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")

    def shake_hands(self) -> None:
        """Shake hands up to the last flight, which `seal` returns."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self.socket.sendall(self._outgoing.read())
                self._incoming.write(self.socket.recv(65536))
            else:
                return

    def seal(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self._outgoing.read()

    def ended(self) -> str:
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            return "reset"
        return "fin"

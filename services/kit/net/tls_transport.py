"""Put TLS between a connection and its transport: a protocol for the loop, a transport for the connection.

The event loop's own TLS is not used because it closes as soon as the peer's side ends, keeps a read buffer of 256 KiB
for each connection, and does not report how much is left to send.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

from services.kit.net.alarm import Alarm
from services.kit.net.connection import Connection
from services.kit.net.host import Host
from services.kit.net.proxy_header import proxy_fault, proxy_version
from services.kit.net.refusals import Refusal
from services.kit.net.tls import TlsFilter


class TlsTransport(asyncio.Transport, asyncio.Protocol):
    """One connection's TLS. A connection whose handshake fails is refused."""

    __slots__ = (
        "_alarm",
        "_connection",
        "_filter",
        "_has_input",
        "_ignores_input",
        "_raw",
        "_sent_close_notify",
        "_timeout_s",
    )

    def __init__(
        self, host: Host[Connection], connection: Connection, tls: TlsFilter, handshake_timeout_s: float
    ) -> None:
        super().__init__()
        self._connection = connection
        self._filter = tls
        self._timeout_s = handshake_timeout_s
        self._alarm = Alarm(host.loop, self._on_timeout)
        self._raw: asyncio.Transport
        self._has_input = False  # any input has come
        self._sent_close_notify = False
        self._ignores_input = False  # after a fault or our close_notify

    # Called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        self._raw = cast(asyncio.Transport, transport)
        self._alarm.set(self._timeout_s, 0.0)
        self._connection.attach(self)
        if hello := self._filter.client_hello():
            self._raw.write(hello)

    def data_received(self, data: bytes) -> None:
        """Decrypt input for the connection; open it after the handshake; refuse a PROXY protocol header."""
        is_first, self._has_input = not self._has_input, True
        if self._ignores_input:
            return
        if is_first and (version := proxy_version(data)) is not None:
            self._refuse(proxy_fault(version), Refusal.PROXY_HEADER)
            return
        tls = self._filter
        was_established = tls.established
        plain = tls.decrypt(data)
        if output := tls.output():
            self._raw.write(output)
        if tls.established and not was_established:
            self._alarm.cancel()
            peer = replace(self._connection.peer, certificate=tls.subject, names=tls.names)
            self._connection.open(peer)
        if plain:
            self._connection.data_received(plain)
        if tls.fault is not None:
            self._on_fault(tls.fault_text)
        elif tls.ended:
            self._connection.eof_received()

    def eof_received(self) -> bool:
        """Pass the end of input to the connection; refuse a client that leaves during the handshake."""
        if self._has_input and not self._ignores_input and not self._filter.established:
            self._refuse("the peer disconnected")
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the write buffer is full."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the write buffer has drained."""
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on that the transport is closed."""
        self._alarm.cancel()
        self._connection.connection_lost(exc)

    def _on_timeout(self) -> None:
        self._refuse(f"not completed within {self._timeout_s:g} s")

    def _on_fault(self, detail: str) -> None:
        if self._filter.established:
            self._ignores_input = True
            self._connection.refuse(Refusal.TLS_RECORD, detail)
            self._connection.abort()
        else:
            self._refuse(detail)

    def _refuse(self, detail: str, reason: Refusal = Refusal.TLS_HANDSHAKE) -> None:
        self._ignores_input = True
        self._connection.refuse(reason, detail)
        self._connection.close()  # orderly, so that TLS's own alert arrives

    # Called by the connection

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send data."""
        self._raw.write(self._filter.encrypt(bytes(data)))

    def write_eof(self) -> None:
        """Send close_notify and FIN."""
        self._send_close_notify()
        self._raw.write_eof()

    def close(self) -> None:
        """Send close_notify unless it was sent, flush and close the socket."""
        if not self._sent_close_notify:
            self._send_close_notify()
        self._raw.close()

    def abort(self) -> None:
        """Close the socket at once; unsent output is lost."""
        self._raw.abort()

    def pause_reading(self) -> None:
        """Stop reading from the socket."""
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        """Read from the socket again."""
        self._raw.resume_reading()

    def get_write_buffer_size(self) -> int:
        """Return the bytes of ciphertext that the kernel has not taken."""
        return self._raw.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the limits of the raw transport's buffer, in bytes."""
        self._raw.set_write_buffer_limits(high, low)

    def _send_close_notify(self) -> None:
        self._ignores_input = self._sent_close_notify = True
        if alert := self._filter.close_notify():
            self._raw.write(alert)

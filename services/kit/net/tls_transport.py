"""TLS between a connection and its transport: a protocol towards the loop, a transport towards the connection.

Not the event loop's own TLS, because that one closes as soon as the peer's side ends, keeps a read buffer of
256 KiB for each connection, and does not tell how much it has left to send.
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
    """Carries one connection's bytes through a `TlsFilter`; refuses it if the handshake comes to nothing."""

    __slots__ = ("_alarm", "_connection", "_deaf", "_filter", "_heard", "_raw", "_said_goodbye", "_timeout_s")

    def __init__(
        self, host: Host[Connection], connection: Connection, tls: TlsFilter, handshake_timeout_s: float
    ) -> None:
        super().__init__()
        self._connection = connection
        self._filter = tls
        self._timeout_s = handshake_timeout_s
        self._alarm = Alarm(host.loop, self._too_slow)
        self._raw: asyncio.Transport
        self._heard = False  # anything came at all
        self._said_goodbye = False
        self._deaf = False  # after a fault, or our goodbye: what still comes is not looked at

    # Towards the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast(asyncio.Transport, transport)
        self._alarm.set(self._timeout_s, 0.0)
        self._connection.attach(self)
        if greeting := self._filter.greeting():
            self._raw.write(greeting)

    def data_received(self, data: bytes) -> None:
        is_first, self._heard = not self._heard, True
        if self._deaf:
            return
        if is_first and (version := proxy_version(data)) is not None:
            self._refuse(proxy_fault(version), Refusal.PROXY_HEADER)
            return
        tls = self._filter
        was_established = tls.established
        plain = tls.decrypt(data)
        if answer := tls.output():
            self._raw.write(answer)
        if tls.established and not was_established:
            self._alarm.cancel()
            peer = replace(self._connection.peer, certificate=tls.subject, names=tls.names)
            self._connection.open(peer)
        if plain:
            self._connection.data_received(plain)
        if tls.fault is not None:
            self._on_fault(tls.trouble)
        elif tls.ended:
            self._connection.eof_received()

    def eof_received(self) -> bool:
        if self._heard and not self._deaf and not self._filter.established:
            self._refuse("the peer left")
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._alarm.cancel()
        self._connection.connection_lost(exc)

    def _too_slow(self) -> None:
        self._refuse(f"not finished after {self._timeout_s:g} s")

    def _on_fault(self, detail: str) -> None:
        if self._filter.established:
            self._deaf = True
            self._connection.refuse(Refusal.TLS_RECORD, detail)
            self._connection.abort()
        else:
            self._refuse(detail)

    def _refuse(self, detail: str, reason: Refusal = Refusal.TLS_HANDSHAKE) -> None:
        self._deaf = True
        self._connection.refuse(reason, detail)
        self._connection.close()  # in order, so that TLS's own alert arrives

    # Towards the connection

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._raw.write(self._filter.encrypt(bytes(data)))

    def write_eof(self) -> None:
        self._say_goodbye()
        self._raw.write_eof()

    def close(self) -> None:
        if not self._said_goodbye:
            self._say_goodbye()
        self._raw.close()

    def abort(self) -> None:
        self._raw.abort()

    def pause_reading(self) -> None:
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._raw.resume_reading()

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._raw.set_write_buffer_limits(high, low)

    def _say_goodbye(self) -> None:
        self._deaf = self._said_goodbye = True
        if goodbye := self._filter.goodbye():
            self._raw.write(goodbye)

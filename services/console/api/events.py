"""Handler of the live view as server-sent events.

Slow readers skip superseded updates: each event is the difference to what was sent before.
"""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import version
from typing import Any

from aiohttp import web

from services.console.access.authorization import Caller
from services.console.contract.problems import Problem
from services.console.contract.roles import Role
from services.console.contract.shape import encode
from services.console.core.route import Call

HEARTBEAT_S = 15.0
RESERVED_SHARE = 10  # a tenth of live views is reserved for operators
RETRY_MS = 2000  # wait of browsers before they reconnect
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # proxies must not buffer it
}


def event(name: str, document: Any) -> bytes:
    """Encode an event."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), encode(document))


async def stream(call: Call) -> web.StreamResponse:
    """Send events until the client disconnects, reads nothing for too long or loses access, or the process stops."""
    console = call.console
    if call.request.method == "HEAD":
        return await _head(call.request)
    if console.streams >= _max_streams(call.caller, console.settings.max_streams):
        text = f"{console.streams} live views are open: close one, or raise console.max_streams"
        raise Problem(503, "too_many_streams", text, headers={"Retry-After": "10"})
    response = web.StreamResponse(headers=HEADERS)
    console.streams += 1
    try:
        with console.live.watching():
            await response.prepare(call.request)
            await _EventStream(call, response).run(_hello(call))
    except (ConnectionError, TimeoutError):
        if call.request.transport is not None:
            call.request.transport.abort()
    finally:
        console.streams -= 1
    return response


def _max_streams(caller: Caller, max_streams: int) -> int:
    """Return the limit for a caller: the last tenth is reserved for operators, as many viewers may share a token."""
    is_operator = caller.role is not None and caller.role.may(Role.OPERATE)
    return max_streams if is_operator else max_streams - max_streams // RESERVED_SHARE


async def _head(request: web.Request) -> web.StreamResponse:
    """Send only the headers of a stream."""
    response = web.StreamResponse(headers=HEADERS)
    await response.prepare(request)
    await response.write_eof()
    return response


def _hello(call: Call) -> bytes:
    refresh_ms = round(call.console.settings.refresh_s * 1000)
    document = {"version": version("penstock"), **call.caller.document(), "refreshMs": refresh_ms}
    return b"retry: %d\n" % RETRY_MS + event("hello", document)


class _EventStream:
    def __init__(self, call: Call, response: web.StreamResponse) -> None:
        self._call = call
        self._console = call.console
        self._response = response
        self._version = -1  # of the rows sent
        self._sent: dict[str, bytes] = {}  # last other events, by name

    async def run(self, hello: bytes) -> None:
        await self._write(hello)
        stopping = asyncio.ensure_future(self._console.stopping.wait())
        try:
            while not stopping.done() and self._has_access():
                live = self._console.live
                poll = asyncio.ensure_future(live.next())
                if live.version:
                    await self._write(b"".join(self._events()))
                await asyncio.wait((poll, stopping), timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED)
                if not poll.done():
                    poll.cancel()
                    await self._write(b": still here\n\n")
        finally:
            stopping.cancel()

    def _has_access(self) -> bool:
        """Return whether the credentials still identify the same caller; a changed token ends the stream."""
        try:
            return self._call.identify() == self._call.caller
        except Problem:
            return False

    def _events(self) -> list[bytes]:
        live = self._console.live
        if live.error is not None:
            return self._if_new("trouble", {"label": live.error.reason, "detail": str(live.error)})
        self._sent.pop("trouble", None)
        events = [event("overview", live.overview())]
        if self._version != live.version:
            events += self._rows()
        for name, document in self._console.events().items():
            events += self._if_new(name, document)
        return events

    def _rows(self) -> list[bytes]:
        rows, gone, is_whole = self._console.live.since(self._version)
        self._version = self._console.live.version
        if not (rows or gone or is_whole):
            return []
        head = b'event: queues\ndata: {"whole":%s,"gone":%s,"rows":[' % (
            b"true" if is_whole else b"false",
            json.dumps(gone).encode(),
        )
        return [head, b",".join(row.encoded() for row in rows), b"]}\n\n"]

    def _if_new(self, name: str, document: Any) -> list[bytes]:
        encoded = event(name, document)
        if self._sent.get(name) == encoded:
            return []
        self._sent[name] = encoded
        return [encoded]

    async def _write(self, data: bytes) -> None:
        """Write, and raise TimeoutError if the client does not read."""
        async with asyncio.timeout(self._console.settings.stream_timeout_s):
            await self._response.write(data)

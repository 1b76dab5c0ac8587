"""The live view as server-sent events. Whoever reads slowly misses nothing but what was overtaken: what is sent is
always the difference to what was sent to him before."""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import version
from typing import Any

from aiohttp import web

from services.console.access.identity import Caller
from services.console.contract.problems import Problem
from services.console.contract.roles import Role
from services.console.contract.shape import encode
from services.console.core.route import Call

HEARTBEAT_S = 15.0
KEPT_SHARE = 10  # of live views so many-th part is for operators
RETRY_MS = 2000  # what browsers wait before they come again
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # proxies that gather answers would hold it back
}


def event(name: str, document: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), encode(document))


async def stream(call: Call) -> web.StreamResponse:
    """Until the client goes, reads nothing for too long, may not come any more, or the process ends."""
    console = call.console
    if call.request.method == "HEAD":
        return await _head(call.request)
    if console.streams >= _most(call.who, console.settings.max_streams):
        text = f"there are {console.streams} live views already: close one, or raise console.max_streams"
        raise Problem(503, "too_many_streams", text, headers={"Retry-After": "10"})
    response = web.StreamResponse(headers=HEADERS)
    console.streams += 1
    try:
        with console.live.watching():
            await response.prepare(call.request)
            await _Watcher(call, response).run(_hello(call))
    except (ConnectionError, TimeoutError):
        if call.request.transport is not None:
            call.request.transport.abort()
    finally:
        console.streams -= 1
    return response


def _most(who: Caller, max_streams: int) -> int:
    """Whoever may only look, be it with one token, leaves the last tenth to those who may do something."""
    may_all = who.role is not None and who.role.may(Role.OPERATE)
    return max_streams if may_all else max_streams - max_streams // KEPT_SHARE


async def _head(request: web.Request) -> web.StreamResponse:
    """What a stream would begin with, and none of it."""
    response = web.StreamResponse(headers=HEADERS)
    await response.prepare(request)
    await response.write_eof()
    return response


def _hello(call: Call) -> bytes:
    refresh_ms = round(call.console.settings.refresh_s * 1000)
    told = {
        "version": version("penstock"),
        "who": call.who.who,
        "role": call.who.role,
        "auth": call.who.auth,
        "refreshMs": refresh_ms,
    }
    return b"retry: %d\n" % RETRY_MS + event("hello", told)


class _Watcher:
    def __init__(self, call: Call, response: web.StreamResponse) -> None:
        self._call = call
        self._console = call.console
        self._response = response
        self._version = -1  # of the rows that were sent
        self._others: dict[str, bytes] = {}  # what was sent last

    async def run(self, hello: bytes) -> None:
        await self._write(hello)
        stopping = asyncio.ensure_future(self._console.stopping.wait())
        try:
            while not stopping.done() and self._is_known():
                live = self._console.live
                looked = asyncio.ensure_future(live.next())
                if live.version:
                    await self._write(b"".join(self._news()))
                await asyncio.wait(
                    (looked, stopping), timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED
                )
                if not looked.done():
                    looked.cancel()
                    await self._write(b": still here\n\n")
        finally:
            stopping.cancel()

    def _is_known(self) -> bool:
        """Still, and as the same one: a token that was changed ends what began with the old one."""
        try:
            return self._call.again() == self._call.who
        except Problem:
            return False

    def _news(self) -> list[bytes]:
        live = self._console.live
        if live.trouble is not None:
            return self._if_new("trouble", {"label": live.trouble.reason, "detail": str(live.trouble)})
        self._others.pop("trouble", None)
        news = [event("overview", live.overview())]
        if self._version != live.version:
            news += self._rows()
        for name, document in self._console.told().items():
            news += self._if_new(name, document)
        return news

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
        told = event(name, document)
        if self._others.get(name) == told:
            return []
        self._others[name] = told
        return [told]

    async def _write(self, data: bytes) -> None:
        """Raises TimeoutError if nothing is read."""
        async with asyncio.timeout(self._console.settings.stream_timeout_s):
            await self._response.write(data)

"""Run a console in the test's event loop, and a client of it.

All responses are checked against the OpenAPI document: an undocumented status, or a document of another shape, fails
the test that sent the request.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self
from urllib.parse import quote

import aiohttp
import yarl
from multidict import CIMultiDict
from pydantic import BaseModel

from services.console.contract.shapes import ProblemShape
from services.console.core.console import Console
from services.console.core.route import Route
from services.console.openapi import PREFIX, RETRYABLE, statuses
from services.console.process import NAME, Hosted, Running, start
from services.console.routes import ROUTES
from services.console.settings import ConsoleSettings
from services.kit.config.settings import GlobalSettings
from services.kit.edge import EdgeContext
from services.kit.metrics.metrics import Metrics
from services.kit.tracing import Recorder
from services.store import Queue, QueueSpec, Store
from services.store.model import records as record
from services.store.pipeline.async_client import AsyncClient
from tests.console.local import HEADERS, keep
from tests.live import Log, until

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def label(self) -> str:
        """Return the label of a problem."""
        assert self.headers["Content-Type"] == "application/problem+json"
        return str(self.document["label"])

    @property
    def items(self) -> list[Any]:
        found: list[Any] = self.document["items"]
        return found


class LiveConsole:
    """A console with `settings` below `console`, ready once entered."""

    def __init__(self, url: str, recorder: Recorder | None = None, **settings: Any) -> None:
        """Create the console; `recorder` enables tracing."""
        self.url = url
        self.settings = ConsoleSettings.model_validate({"port": 0, "refresh_s": 0.1, **settings})
        self.metrics = Metrics(NAME)
        self.metrics.store_observer.recorder = recorder
        self.log = Log()
        self.tools = Store(url, "test")  # for the test's own access to the store
        self.faults: list[str] = []
        self.place = ("", 0)
        self.running: Running | None = None
        self._session: aiohttp.ClientSession | None = None
        self._folder = TemporaryDirectory()  # its data folder

    async def __aenter__(self) -> Self:
        logging.getLogger().addHandler(self.log)
        logging.getLogger().setLevel(logging.INFO)
        store = {"data_dir": keep(Path(self._folder.name))}
        hosted = Hosted(console=self.settings, everything=GlobalSettings.model_validate({"store": store}))
        context = EdgeContext(
            NAME,
            hosted,
            self.url,
            self.metrics,
            _no_listeners,
            _no_listeners,
            _unused,
            _unused,  # type: ignore[arg-type]
        )
        self.running = await start(context)
        line = self.log.events("listening")[-1]
        self.place = (line.host, line.port)  # type: ignore[attr-defined]
        headers = HEADERS if self.settings.is_local else {}
        self._session = aiohttp.ClientSession(auto_decompress=False, headers=headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        assert self.running is not None
        await self._session.close()
        await self.running.close()
        await self.tools.close()
        self._folder.cleanup()
        logging.getLogger().removeHandler(self.log)
        assert self.log.tracebacks() == []
        assert self.value("penstock_local_errors_total") == 0

    @property
    def inside(self) -> Console:
        """Return the components that handlers work with."""
        assert self.running is not None
        return self.running.console

    async def stop_taking(self) -> None:
        """Stop serving, as at the end of the process."""
        assert self.running is not None
        await self.running.stop_taking()

    # Requests

    @property
    def session(self) -> aiohttp.ClientSession:
        assert self._session is not None
        return self._session

    @property
    def base(self) -> str:
        host, port = self.place
        return f"http://{host}:{port}"

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
        token: str = "",
    ) -> Reply:
        """Send a request, and check the response against the OpenAPI document. `path` is below /api/v1, encoded."""
        sent = CIMultiDict(headers or {})
        if token:
            sent["Authorization"] = f"Bearer {token}"
        if body is not None:
            data = json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        # aiohttp warns of large bodies that are octets
        content = io.BytesIO(data) if data is not None else None
        url = yarl.URL(f"{self.base}{PREFIX}{path}", encoded=True)
        async with self.session.request(method, url, data=content, headers=sent) as response:
            reply = Reply(response.status, response.headers, await response.read())
        check(method, path, reply)
        return reply

    async def get(self, path: str, **options: Any) -> Reply:
        return await self.ask("GET", path, **options)

    async def found(self, path: str, **options: Any) -> Any:
        """Return the document of a successful GET."""
        reply = await self.get(path, **options)
        assert reply.status == 200, reply
        return reply.document

    async def pages(self, path: str) -> list[list[Any]]:
        """Return the items of each page of a list; `path` has a query."""
        found: list[list[Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            page = await self.found(f"{path}&cursor={cursor}")
            found.append(page["items"])
            cursor = page["next"]
        return found

    async def every(self, path: str) -> list[Any]:
        """Return the items of all pages."""
        return [item for page in await self.pages(path) for item in page]

    async def etag(self, path: str) -> dict[str, str]:
        """Return If-Match for a change."""
        return {"If-Match": (await self.get(path)).headers["ETag"]}

    # The store behind it

    async def declare(self, name: str, *, replace: bool = False, **spec: Any) -> Queue:
        read = QueueSpec.model_validate({"ackLevel": "memory", **spec})
        queue, _ = await self.tools.catalogue.declare(name, read, "test", replace=replace)
        return queue

    async def fill(self, queue: Queue, *bodies: bytes, attributes: Mapping[str, Any] | None = None) -> None:
        records = [record.encode(body, attributes) for body in bodies]
        client = await self._client(queue)
        for at in range(0, len(records), 1000):
            assert await client.publish(queue, records[at : at + 1000], "test") == []

    async def bury(
        self, queue: Queue, *bodies: bytes, reason: str = "poison", error: str = "no good"
    ) -> list[str]:
        """Create dead letters; return their IDs."""
        await self.fill(queue, *bodies)
        client = await self._client(queue)
        left = len(bodies)
        while left:
            taken = await client.take(queue, min(left, 1000))
            await client.reject(taken, reason, error)
            left -= sum(delivery.count for delivery in taken)
        return [letter["id"] for letter in await self.letters(queue.name)]

    async def letters(self, name: str, query: str = "") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (
            await self.get(f"/queues/{quote(name, safe='')}/dead?limit=1000{query}")
        ).items
        return found

    async def stats(self, name: str) -> dict[str, Any]:
        return await self.tools.listing.stats(await self.tools.catalogue.find(name))

    async def _client(self, queue: Queue) -> AsyncClient:
        pipe = self.tools.open_domain(queue.domain).pipe
        await pipe.ready()
        return AsyncClient(pipe)

    # Results

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, {"edge": NAME, **labels}) or 0.0

    def audited(self, **fields: object) -> list[dict[str, Any]]:
        """Return lines of the audit log in the process's log."""
        return [vars(line) for line in self.log.events("audit", **fields)]

    async def job(self, reply: Reply) -> dict[str, Any]:
        """Return the job once it has ended."""
        assert reply.status == 202, reply
        path = reply.headers["Location"].removeprefix(PREFIX)

        async def ended() -> Any:
            job = await self.found(path)
            return job if job["state"] != "running" else None

        found: dict[str, Any] = await until(ended)
        return found


def _unused(*_: object) -> None:
    return None


def _no_listeners(*_: object) -> Any:
    raise AssertionError("the console has no listeners of the kit")


def route_of(method: str, path: str) -> Route | None:
    """Return the most specific route that matches."""
    plain = path.partition("?")[0]
    fits = [
        route
        for route in ROUTES
        if route.method == method and re.fullmatch(re.sub(r"\{[a-z]+\}", "[^/]+", route.path), plain)
    ]
    return min(fits, key=lambda route: route.path.count("{")) if fits else None


def check(method: str, path: str, reply: Reply) -> None:
    """Check a response against the OpenAPI document."""
    assert "default-src" in reply.headers["Content-Security-Policy"]
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    route = route_of(method, path)
    if reply.status >= 400:
        assert reply.headers["Content-Type"] == "application/problem+json", reply
        problem = ProblemShape.model_validate(reply.document)
        assert problem.status == reply.status
        assert ("Retry-After" in reply.headers) is (reply.status in RETRYABLE)
        assert route is None or reply.status in statuses(route), (
            f"{method} {path}: {reply} is not in the document"
        )
        return
    if route is None:
        return
    assert reply.status in route.answers, f"{method} {path}: {reply} is not in the document"
    assert all(name in reply.headers for name in route.response_headers.get(reply.status, ())), reply
    model = route.answers[reply.status]
    if isinstance(model, type) and issubclass(model, BaseModel):
        model.model_validate(reply.document)


class Events:
    """Events of a live view."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.seen: list[tuple[str, Any]] = []

    async def next(self, name: str) -> Any:
        """Return the data of the next event of this name."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                kind, document = await self._read()
                self.seen.append((kind, document))
                if kind == name:
                    return document

    async def rest(self) -> bytes:
        """Return the rest of the stream."""
        return await self._response.content.read()

    async def _read(self) -> tuple[str, Any]:
        kind, data = "", ""
        while True:
            line = (await self._response.content.readline()).decode().rstrip("\n")
            if not line and kind:
                return kind, json.loads(data)
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data = value

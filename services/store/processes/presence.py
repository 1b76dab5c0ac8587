"""Which processes run: each writes down what it is, under the store's clock; who is silent is gone (docs/store.md)."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import logging
import os
import random
import socket
import time
from dataclasses import dataclass
from typing import Any

from services.store.catalogue.registry import Registry
from services.store.model.errors import StoreError
from services.store.processes.rpc_protocol import Respondent

log = logging.getLogger(__name__)

RENEW_S = 10.0
LOOK_S = 1.0  # how soon a change is told: an address, a process that is not ready any more
SILENT_MS = 30_000  # who has not written for so long does not run
LAST_S = 1.0  # to take the entry away, when the process ends, takes no longer
NOTHING: dict[str, Any] = {"listeners": [], "health": None, "unready": None, "connections": 0}


@dataclass(frozen=True, slots=True)
class Process:
    """One process that runs, as it said itself at `seen_ms`."""

    name: str  # for its life: edge, host, process id and chance
    edge: str
    host: str
    pid: int
    version: str  # '' where nobody knows
    started_ms: int  # by its own clock
    seen_ms: int  # by the store's clock (`Store.now_ms`)
    listeners: tuple[tuple[str, str], ...]  # (name, 'host:port'), once it listens
    health: str | None  # 'host:port' of its pages; None where it does not know
    unready: str | None  # why requests cannot be served now, or None
    connections: int  # that were open then
    topics: frozenset[str]  # what it can be asked (inquiries.py)


async def running(registry: Registry) -> list[Process]:
    """By edge and name. An entry that cannot be read is of another version, and left out. Raises StoreUnavailable."""
    now = await registry.link.now_ms()
    found = await registry.link.call("HGETALL", registry.keys.processes)
    read = [_parse(found[i], found[i + 1]) for i in range(0, len(found), 2)]
    those = [one for one in read if one is not None and one.seen_ms > now - SILENT_MS]
    return sorted(those, key=lambda one: (one.edge, one.name))


def _parse(name: bytes, value: bytes) -> Process | None:
    seen, _, text = value.partition(b" ")
    try:
        return _process(name.decode(), int(seen), json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        fields = {"action": "process_unread", "process": name.decode("utf-8", "backslashreplace")}
        log.debug("a process's entry cannot be read: %r", error, extra=fields)
        return None


def _process(name: str, seen_ms: int, told: dict[str, Any]) -> Process:
    return Process(
        name=name,
        edge=str(told["edge"]),
        host=str(told["host"]),
        pid=int(told["pid"]),
        version=str(told["version"]),
        started_ms=int(told["startedMs"]),
        seen_ms=seen_ms,
        listeners=tuple((str(one["name"]), str(one["address"])) for one in told["listeners"]),
        health=_text(told["health"]),
        unready=_text(told["unready"]),
        connections=int(told["connections"]),
        topics=frozenset(map(str, told["topics"])),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


class Presence:
    """Keeps this process's own entry, from `start` until `close`."""

    def __init__(self, registry: Registry, name: str, edge: str, respondent: Respondent) -> None:
        self._registry = registry
        self._name = name
        self._respondent = respondent
        self._ourselves = {
            **{"edge": edge, "host": socket.gethostname(), "pid": os.getpid()},
            **{"version": _version(), "startedMs": int(time.time() * 1000)},
        }
        self._hears = asyncio.Event()
        self._told: dict[str, Any] = {}
        self._renew_at = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep(), name="store presence")

    def hears(self) -> None:
        """From now on it can be asked, and says so at once: before, whoever asked would wait in vain."""
        self._hears.set()

    async def stop(self) -> None:
        """Nothing is written any more; the entry stays until `leave`, or until it is too old."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def leave(self) -> None:
        """After `stop`: a process that ends in order is gone at once."""
        keys = self._registry.keys
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(LAST_S):
                await self._registry.link.call("HDEL", keys.processes, self._name)

    async def _keep(self) -> None:
        """A fault of ours does not end it."""
        fields = {"action": "presence_failed"}
        while True:
            try:
                await self._look()
            except StoreError as error:
                log.debug("the process is not told of: %s", error, extra=fields)
            except Exception:
                log.exception("the process is not told of", extra=fields)
            await self._pause()

    async def _pause(self) -> None:
        if self._hears.is_set():
            await asyncio.sleep(LOOK_S)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await self._hears.wait()

    async def _look(self) -> None:
        now, about = asyncio.get_running_loop().time(), self._about()
        if now >= self._renew_at or _is_news(about, self._told):
            await self._tell(about)
            self._told, self._renew_at = about, now + RENEW_S * random.uniform(0.9, 1.1)

    def _about(self) -> dict[str, Any]:
        asked = self._respondent
        topics = sorted(asked.topics) if self._hears.is_set() else []
        return {**self._ourselves, **NOTHING, **asked.about(), "topics": topics}

    async def _tell(self, about: dict[str, Any]) -> None:
        text = json.dumps(about, separators=(",", ":"))
        keys = [self._registry.keys.processes]
        await self._registry.link.function("process", keys, self._name, text, SILENT_MS)


def _is_news(about: dict[str, Any], told: dict[str, Any]) -> bool:
    """How many connections there are is told with the rest."""
    return {**about, "connections": 0} != {**told, "connections": 0}


def _version() -> str:
    try:
        return importlib.metadata.version("penstock")
    except importlib.metadata.PackageNotFoundError:
        return ""

"""The directory of running processes: each renews an entry by the store's clock (docs/store.md)."""

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
CHECK_S = 1.0  # a changed address or readiness is written within this time
SILENT_MS = 30_000  # an entry that was not renewed for this long is expired
LEAVE_TIMEOUT_S = 1.0
NOTHING: dict[str, Any] = {"listeners": [], "health": None, "unready": None, "connections": 0}


@dataclass(frozen=True, slots=True)
class Process:
    """A running process, as it reported itself at `seen_ms`."""

    name: str  # unique: edge, host, process id and random digits
    edge: str
    host: str
    pid: int
    version: str  # '' if unknown
    started_ms: int  # by its own clock
    seen_ms: int  # by the store's clock (`Store.now_ms`)
    listeners: tuple[tuple[str, str], ...]  # (name, 'host:port'), once it listens
    health: str | None  # 'host:port' of its health pages; None if unknown
    unready: str | None  # why it is not ready, None if it is
    connections: int  # open at `seen_ms`
    topics: frozenset[str]  # the questions that it answers (rpc_protocol.py)


async def running(registry: Registry) -> list[Process]:
    """Return the running processes by edge and name, without unreadable entries (of other versions).

    Raises StoreUnavailable.
    """
    now = await registry.link.now_ms()
    found = await registry.link.call("HGETALL", registry.keys.processes)
    read = [_parse(found[i], found[i + 1]) for i in range(0, len(found), 2)]
    alive = [process for process in read if process is not None and process.seen_ms > now - SILENT_MS]
    return sorted(alive, key=lambda process: (process.edge, process.name))


def _parse(name: bytes, value: bytes) -> Process | None:
    seen, _, text = value.partition(b" ")
    try:
        return _process(name.decode(), int(seen), json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        fields = {"action": "process_unread", "process": name.decode("utf-8", "backslashreplace")}
        log.debug("ignored a process's entry, which cannot be read: %r", error, extra=fields)
        return None


def _process(name: str, seen_ms: int, entry: dict[str, Any]) -> Process:
    return Process(
        name=name,
        edge=str(entry["edge"]),
        host=str(entry["host"]),
        pid=int(entry["pid"]),
        version=str(entry["version"]),
        started_ms=int(entry["startedMs"]),
        seen_ms=seen_ms,
        listeners=tuple((str(one["name"]), str(one["address"])) for one in entry["listeners"]),
        health=_text(entry["health"]),
        unready=_text(entry["unready"]),
        connections=int(entry["connections"]),
        topics=frozenset(map(str, entry["topics"])),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


class Presence:
    """This process's own entry, kept from `start` until `leave`."""

    def __init__(self, registry: Registry, name: str, edge: str, respondent: Respondent) -> None:
        self._registry = registry
        self._name = name
        self._respondent = respondent
        self._fixed = {
            **{"edge": edge, "host": socket.gethostname(), "pid": os.getpid()},
            **{"version": _version(), "startedMs": int(time.time() * 1000)},
        }
        self._listens = asyncio.Event()
        self._written: dict[str, Any] = {}
        self._renew_at = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Write the entry and renew it from now on."""
        self._task = asyncio.create_task(self._keep(), name="store presence")

    def announce_topics(self) -> None:
        """Add the topics to the entry: the process can be asked from now on."""
        self._listens.set()

    async def stop(self) -> None:
        """Renew the entry no longer; it stays until `leave`, or until it expires."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def leave(self) -> None:
        """Remove the entry. Call `stop` before."""
        keys = self._registry.keys
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                await self._registry.link.call("HDEL", keys.processes, self._name)

    async def _keep(self) -> None:
        fields = {"action": "presence_failed"}
        while True:
            try:
                await self._renew()
            except StoreError as error:
                log.debug("the process's entry could not be renewed: %s", error, extra=fields)
            except Exception:
                log.exception("internal error: the process's entry is not renewed", extra=fields)
            await self._pause()

    async def _pause(self) -> None:
        if self._listens.is_set():
            await asyncio.sleep(CHECK_S)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CHECK_S):
                await self._listens.wait()

    async def _renew(self) -> None:
        """Write the entry if it is due or has changed in more than its connections."""
        now, entry = asyncio.get_running_loop().time(), self._entry()
        if now >= self._renew_at or {**entry, "connections": 0} != {**self._written, "connections": 0}:
            text = json.dumps(entry, separators=(",", ":"))
            keys = [self._registry.keys.processes]
            await self._registry.link.function("process", keys, self._name, text, SILENT_MS)
            self._written, self._renew_at = entry, now + RENEW_S * random.uniform(0.9, 1.1)

    def _entry(self) -> dict[str, Any]:
        topics = sorted(self._respondent.topics) if self._listens.is_set() else []
        return {**self._fixed, **NOTHING, **self._respondent.about(), "topics": topics}


def _version() -> str:
    try:
        return importlib.metadata.version("penstock")
    except importlib.metadata.PackageNotFoundError:
        return ""

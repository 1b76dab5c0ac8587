"""Find out which ack levels a store can keep.

Administrators' commands (`up`, `store init`, `doctor`) probe it, as CONFIG GET is not allowed to edges. The result is
kept with the registry, where edges read it before they declare a queue.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

from services.store.model.ack_levels import Promises
from services.store.redis.connect import Connector, ask, parse_info

PROBED_KEY = "ps:{registry}:epoch"
MINIMUM = {"redis": (7, 0), "valkey": (8, 0)}
ANSWER_TIMEOUT_S = 5.0
SETTINGS = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory", "maxmemory-policy")


class Grade(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"  # works, with weaker guarantees than possible
    FAIL = "fail"  # must not be used like this


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of `penstock doctor`."""

    subject: str
    grade: Grade
    found: str
    advice: str = ""


def hidden(subject: str) -> Finding:
    """Return the finding of a check that the user is not permitted to make."""
    return Finding(subject, Grade.WARN, "not permitted to check", "needs an administrator's rights")


def findings(promises: Promises, *, production: bool = False) -> list[Finding]:
    """Return the findings for `penstock doctor`."""
    return [
        _version_finding(promises),
        _durability_finding(promises),
        _memory_finding(promises, production),
        _policy_finding(promises),
        _levels_finding(promises),
    ]


def _version_finding(p: Promises) -> Finding:
    major, minor = (int(part) for part in [*p.version.split("."), "0"][:2])
    least = MINIMUM[p.server]
    found = f"{p.server} {p.version}, {p.mode}, {p.replicas} replicas"
    if (major, minor) < least:
        return Finding("server", Grade.FAIL, found, f"use {p.server} {least[0]}.{least[1]} or newer")
    return Finding("server", Grade.OK, found)


def _durability_finding(p: Promises) -> Finding:
    if not p.settings:
        return hidden("durability")
    found = ", ".join(f"{name} {p.settings.get(name, '?')}" for name in SETTINGS[:3])
    if p.settings.get("appendonly") != "yes":
        return Finding("durability", Grade.FAIL, found, "a restart loses everything: set appendonly yes")
    if not p.fsyncs:
        return Finding(
            "durability", Grade.WARN, found, "a power cut loses about a second: set appendfsync always"
        )
    if p.fails_over and not p.replicas:
        return Finding("durability", Grade.WARN, found, "no replica can take over: add one")
    if p.mode == "single" and p.replicas:
        return Finding(
            "durability",
            Grade.WARN,
            f"{found}; one address, {p.replicas} replica{'s' if p.replicas > 1 else ''}",
            "if one of them may take over behind this address, fsync loses what it lacks: use ackLevel "
            "replicated:<n>, or name the Sentinels in the URL",
        )
    return Finding("durability", Grade.OK, found)


def _memory_finding(p: Promises, production: bool) -> Finding:
    if not p.settings:
        return hidden("memory")
    limit = p.settings.get("maxmemory", "?")
    if limit == "0":
        grade = Grade.FAIL if production else Grade.WARN
        return Finding(
            "memory", grade, "maxmemory 0 (no limit)", "set maxmemory: publishes stop at 75 % of it"
        )
    return Finding("memory", Grade.OK, f"maxmemory {limit}")


def _policy_finding(p: Promises) -> Finding:
    if not p.settings:
        return hidden("eviction")
    policy = p.settings.get("maxmemory-policy", "?")
    if policy not in ("noeviction", "?"):
        return Finding(
            "eviction", Grade.FAIL, policy, "the server may evict messages: set maxmemory-policy noeviction"
        )
    return Finding("eviction", Grade.OK if policy != "?" else Grade.WARN, policy)


def _levels_finding(p: Promises) -> Finding:
    """Without the settings, every store would seem to keep only `memory`."""
    if not p.settings:
        return hidden("ack levels")
    return Finding("ack levels", Grade.OK, ", ".join(p.levels()) or "memory")


async def probe(connector: Connector) -> Promises:
    """Probe the primary that holds the registry. Raises RedisError, OSError or TimeoutError."""
    connection = await connector.connect(PROBED_KEY)
    try:
        info = parse_info(await _ask(connection, "INFO"))
        settings = await _settings(connection)
    finally:
        await connection.disconnect(nowait=True)
    server = "valkey" if "valkey_version" in info else "redis"
    return Promises(
        server=server,
        version=info.get(f"{server}_version", "0"),
        mode=connector.url.mode,
        replicas=int(info.get("connected_slaves", "0")),
        settings=settings,
    )


async def _settings(connection: AbstractConnection) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name in SETTINGS:
        try:
            found = await _ask(connection, "CONFIG", "GET", name)
        except ResponseError:  # NOPERM, or a managed service without CONFIG
            return {}
        if found:
            settings[found[0].decode()] = found[1].decode()
    return settings


async def _ask(connection: AbstractConnection, *command: str) -> Any:
    async with asyncio.timeout(ANSWER_TIMEOUT_S):
        return await ask(connection, *command)

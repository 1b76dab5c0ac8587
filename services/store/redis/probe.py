"""Find out which ack levels a store can keep.

Administrators' commands (`up`, `store init`, `doctor`) probe it, as CONFIG GET is not allowed to edges. The result is
kept with the registry, where edges read it before they declare a queue.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

from services.store.model.errors import AckLevelRefused
from services.store.model.spec import STRICTEST, QueueSpec, replicas_of
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


@dataclass(frozen=True, slots=True)
class Promises:
    """The properties of a store that decide which ack levels a queue may have. `mode` is as in StoreUrl."""

    server: str
    version: str
    mode: str
    replicas: int
    settings: dict[str, str]  # empty where CONFIG GET is not allowed
    usual_replicas: int = 0  # the most that were seen

    @property
    def fsyncs(self) -> bool:
        """Return True if the server calls fsync before it answers."""
        known = self.settings
        return (
            known.get("appendonly") == "yes"
            and known.get("appendfsync") == "always"
            and known.get("no-appendfsync-on-rewrite") == "no"
        )

    @property
    def fails_over(self) -> bool:
        """Return True if another server may take over; then only replicated data survives."""
        return self.mode in ("sentinel", "cluster")

    @property
    def strongest(self) -> str:
        """The strictest ack level that this store can keep; with failovers also while its replicas are down."""
        if self.fails_over:
            return "replicated:1" if self.replicas or self.usual_replicas else "memory"
        return "fsync" if self.fsyncs else "memory"

    def strictest(self, had: str = "") -> str:
        """Return the ack level for a queue or log that names none.

        had: its present level, '' if it is new. It is kept if only `memory` is left, so that a changed server setting
        never weakens it silently, and while replicas are down, so that the queue can still be changed.
        """
        is_away = replicas_of(self.strongest) > self.replicas
        return had if had and (self.strongest == "memory" or is_away) else self.strongest

    def settled(self, spec: QueueSpec, had: str = "") -> QueueSpec:
        """Return the spec with an ack level: its own, else `strictest`."""
        if spec.ack_level != STRICTEST:
            return spec
        return spec.model_copy(update={"ack_level": self.strictest(had)})

    def check(self, level: str, had: str = "") -> None:
        """Raise AckLevelRefused, which says what to change, for a level that this store cannot keep.

        had: the present level of the queue or log. Its replicas may be down, as each publish checks them.
        """
        wanted = replicas_of(level)
        if wanted > self.replicas and level != had:
            other = self.strongest if replicas_of(self.strongest) <= self.replicas else "memory"
            raise AckLevelRefused(
                f"ackLevel {level} needs {wanted} replicas, this store has {self.replicas} now: add replicas, wait "
                f"until they are back, or use {other}"
            )
        if level == "fsync" and self.fails_over:
            raise AckLevelRefused(
                "ackLevel fsync guarantees nothing here, as a failover loses what only the primary has on its disk: "
                "use replicated:1, or leave ackLevel out"
            )
        if level == "fsync" and not self.fsyncs:
            raise AckLevelRefused(
                "ackLevel fsync needs appendonly yes, appendfsync always and no-appendfsync-on-rewrite no in the "
                "store's configuration; set them, or use ackLevel memory"
            )

    def keeps(self, level: str) -> bool:
        """Return whether the store can keep the level, apart from its current replicas, which each publish checks."""
        return level != "fsync" or (self.fsyncs and not self.fails_over)

    def findings(self, *, production: bool = False) -> list[Finding]:
        """Return the findings for `penstock doctor`."""
        return [
            _version_finding(self),
            _durability_finding(self),
            _memory_finding(self, production),
            _policy_finding(self),
            _levels_finding(self),
        ]

    def levels(self) -> list[str]:
        """Return the ack levels that the store can keep now."""
        found = []
        for level in ("memory", "fsync", *(f"replicated:{n}" for n in range(1, self.replicas + 1))):
            try:
                self.check(level)
            except AckLevelRefused:
                continue
            found.append(level)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object for the registry and `penstock doctor`."""
        found = asdict(self)
        del found["usual_replicas"]
        return found


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

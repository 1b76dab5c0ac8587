"""What a store can promise, and why not more. Asked by whoever may (`up`, `store init`, `doctor`: CONFIG GET is not for
edges) and written beside the registry, where every edge reads it before it declares a queue."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

from services.store.model.errors import AckLevelRefused
from services.store.model.spec import STRICTEST, QueueSpec, replicas_of
from services.store.redis.connect import Connector, ask

PROBED_KEY = "ps:{registry}:epoch"
MINIMUM = {"redis": (7, 0), "valkey": (8, 0)}
ANSWER_TIMEOUT_S = 5.0
SETTINGS = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory", "maxmemory-policy")


class Grade(StrEnum):
    """How a finding is to be read."""

    OK = "ok"
    WARN = "warn"  # works, but promises less than it could
    FAIL = "fail"  # must not be used like this


@dataclass(frozen=True, slots=True)
class Finding:
    subject: str
    grade: Grade
    found: str
    advice: str = ""


def hidden(subject: str) -> Finding:
    """What may not be looked at."""
    return Finding(subject, Grade.WARN, "may not be looked at", "needs an administrator's rights")


@dataclass(frozen=True, slots=True)
class Promises:
    """The facts that decide which ack levels a queue may have. `mode` is as in StoreUrl."""

    server: str
    version: str
    mode: str
    replicas: int
    settings: dict[str, str]  # empty where CONFIG GET is not allowed
    usual_replicas: int = 0  # the most that were ever seen

    @property
    def fsyncs(self) -> bool:
        """Whether an answer means that the operating system has written it to the disk."""
        known = self.settings
        return (
            known.get("appendonly") == "yes"
            and known.get("appendfsync") == "always"
            and known.get("no-appendfsync-on-rewrite") == "no"
        )

    @property
    def fails_over(self) -> bool:
        """Whether another server may take over: then only what a replica has survives."""
        return self.mode in ("sentinel", "cluster")

    @property
    def strongest(self) -> str:
        """The strictest ack level that this store can keep; with failovers also while its replicas are away."""
        if self.fails_over:
            return "replicated:1" if self.replicas or self.usual_replicas else "memory"
        return "fsync" if self.fsyncs else "memory"

    def strictest(self, had: str = "") -> str:
        """Return the level of a queue or log that names none.

        had: the level that it has already, '' if it is new. It is kept where only `memory` is left, so that a changed
        setting never weakens it in silence, and while replicas are away, so that it can still be changed.
        """
        is_away = replicas_of(self.strongest) > self.replicas
        return had if had and (self.strongest == "memory" or is_away) else self.strongest

    def settled(self, spec: QueueSpec, had: str = "") -> QueueSpec:
        """Return the spec with an ack level: its own, else `strictest`."""
        if spec.ack_level != STRICTEST:
            return spec
        return spec.model_copy(update={"ack_level": self.strictest(had)})

    def check(self, level: str, had: str = "") -> None:
        """Raise AckLevelRefused, saying what to change, for a level this store cannot keep.

        had: the level that the queue or log has already. Its replicas may be away: each put asks for them.
        """
        wanted = replicas_of(level)
        if wanted > self.replicas and level != had:
            other = self.strongest if replicas_of(self.strongest) <= self.replicas else "memory"
            raise AckLevelRefused(
                f"ackLevel {level} needs {wanted} replicas, this store has {self.replicas} now: add replicas or wait "
                f"until they are back, or use {other}"
            )
        if level == "fsync" and self.fails_over:
            raise AckLevelRefused(
                "a failover loses what only the primary has written to its disk, so fsync promises nothing here: use "
                "replicated:1, or leave ackLevel out"
            )
        if level == "fsync" and not self.fsyncs:
            raise AckLevelRefused(
                "ackLevel fsync needs appendonly yes, appendfsync always and no-appendfsync-on-rewrite no in the "
                "store's configuration; set them, or use ackLevel memory"
            )

    def keeps(self, level: str) -> bool:
        """Whether the level can be kept by this store at all; how many replicas there are now, WAIT looks itself."""
        return level != "fsync" or (self.fsyncs and not self.fails_over)

    def findings(self, *, production: bool = False) -> list[Finding]:
        """For `penstock doctor`."""
        return [
            _version_finding(self),
            _durability_finding(self),
            _memory_finding(self, production),
            _policy_finding(self),
            _levels_finding(self),
        ]

    def levels(self) -> list[str]:
        found = []
        for level in ("memory", "fsync", *(f"replicated:{n}" for n in range(1, self.replicas + 1))):
            try:
                self.check(level)
            except AckLevelRefused:
                continue
            found.append(level)
        return found

    def to_json(self) -> dict[str, Any]:
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
        return Finding("durability", Grade.WARN, found, "a failover needs a replica, and there is none")
    if p.mode == "single" and p.replicas:
        return Finding(
            "durability",
            Grade.WARN,
            f"{found}; one address, {p.replicas} replica{'s' if p.replicas > 1 else ''}",
            "if one of them may take over behind this address, fsync loses what it lacks: say replicated:<n>, or name "
            "the Sentinels",
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
            "eviction", Grade.FAIL, policy, "messages could be thrown away: set maxmemory-policy noeviction"
        )
    return Finding("eviction", Grade.OK if policy != "?" else Grade.WARN, policy)


def _levels_finding(p: Promises) -> Finding:
    """Without the settings every store would look as if it kept nothing but `memory`."""
    if not p.settings:
        return hidden("ack levels")
    return Finding("ack levels", Grade.OK, ", ".join(p.levels()) or "memory")


async def probe(connector: Connector) -> Promises:
    """Asks the primary that holds the registry. Raises RedisError, OSError or TimeoutError."""
    connection = await connector.connect(PROBED_KEY)
    try:
        info = _info((await _ask(connection, "INFO")).decode())
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


def _info(text: str) -> dict[str, str]:
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def connected_replicas(info: str) -> int:
    """Return how many replicas a primary has, by its `INFO replication`."""
    return int(_info(info).get("connected_slaves", "0"))

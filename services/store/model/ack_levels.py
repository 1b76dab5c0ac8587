"""Decide which ack levels a store can keep, and check documents of queues and logs against them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from services.store.model.errors import AckLevelRefused
from services.store.model.spec import STRICTEST, QueueSpec, replicas_of


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
    def strictest_possible(self) -> str:
        """The strictest ack level that this store can keep; with failovers also while its replicas are down."""
        if self.fails_over:
            return "replicated:1" if self.replicas or self.usual_replicas else "memory"
        return "fsync" if self.fsyncs else "memory"

    def strictest(self, had: str = "") -> str:
        """Return the ack level for a queue or log that names none.

        had: its present level, '' if it is new. It is kept if only `memory` is left, so that a changed server setting
        never weakens it silently, and while replicas are down, so that the queue can still be changed.
        """
        level = self.strictest_possible
        is_away = replicas_of(level) > self.replicas
        return had if had and (level == "memory" or is_away) else level

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
            replicas = "replica" if wanted == 1 else "replicas"
            possible = self.strictest_possible
            other = possible if replicas_of(possible) <= self.replicas else "memory"
            raise AckLevelRefused(
                f"ackLevel {level} needs {wanted} {replicas}, this store has {self.replicas} now: add replicas, wait "
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

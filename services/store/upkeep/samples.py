"""Encode samples for the store's stream: named text fields (docs/store.md, Samples)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from services.store.model.names import encode_name
from services.store.pipeline.tallies import Tally
from services.store.upkeep.process_counters import EdgeTally

VERSION = "1"
Sample = list[str | int | bytes]  # field, value, field, value ...


class Writer:
    """An encoder of one process's samples."""

    def __init__(self, edge: str) -> None:
        self.number = 0  # of the present round of samples
        self._edge = edge
        self._process = f"{edge}-{secrets.token_hex(8)}"

    def write(self, tally: Tally | EdgeTally, now: float) -> Sample:
        """Return the sample of a tally. now: monotonic."""
        return self._of_queue(tally, now) if isinstance(tally, Tally) else self._of_edge(tally, now)

    def _of_queue(self, tally: Tally, now: float) -> Sample:
        return [
            *self._begin("queue", now - tally.since),
            *("queue", encode_name(tally.name)),
            *("in", tally.accepted, "in_octets", tally.accepted_octets),
            *("out", tally.given, "out_octets", tally.given_octets),
            *("acked", tally.acked, "returned", tally.returned, "rejected", tally.rejected),
            *("refused", _reasons(tally.refused), "refused_puts", tally.refused_puts),
            *("put", _classes(tally.put), "wait", _classes(tally.wait)),
        ]

    def _of_edge(self, tally: EdgeTally, now: float) -> Sample:
        return [
            *self._begin("edge", now - tally.since),
            *("connections", tally.connections, "opened", tally.opened),
            *("received_octets", tally.received_octets, "sent_octets", tally.sent_octets),
            *("refused", _reasons(tally.refused)),
        ]

    def _begin(self, kind: str, seconds: float) -> Sample:
        named: Sample = ["v", VERSION, "kind", kind, "edge", self._edge, "process", self._process]
        return [*named, "n", self.number, "ms", max(1, round(seconds * 1000))]


def _reasons(refused: Mapping[str, int]) -> str:
    return ",".join(f"{reason}={number}" for reason, number in sorted(refused.items()))


def _classes(counts: Sequence[int]) -> str:
    return ",".join(map(str, counts))

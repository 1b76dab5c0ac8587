"""What a process tells of itself: its connections and their bytes, and the refusals that no queue is to blame for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


class EdgeFigures(Protocol):
    """Connections that are open now; all else since the process began."""

    @property
    def connections(self) -> int: ...
    @property
    def opened(self) -> int: ...
    @property
    def received_octets(self) -> int: ...
    @property
    def sent_octets(self) -> int: ...
    @property
    def refused(self) -> Mapping[str, int]:
        """What was refused without asking the store, by reason."""


@runtime_checkable
class Shell(Protocol):
    """What stands around an edge, and knows its connections: as the store's observer it tells of them, too."""

    def figures(self) -> EdgeFigures: ...


@dataclass(slots=True)
class EdgeTally:
    """Since `since` (monotonic)."""

    since: float
    connections: int = 0
    opened: int = 0
    received_octets: int = 0
    sent_octets: int = 0
    refused: Counter[str] = field(default_factory=Counter)


class ProcessCounters:
    """Read as tallies are, and put back if that was in vain. shell: None where nobody connects."""

    def __init__(self, shell: Shell | None, now: float) -> None:
        self._shell = shell
        self._told = EdgeTally(now)  # of the figures, those that were read before
        self._tally = EdgeTally(now)

    def refuse(self, refused: Mapping[str, int]) -> None:
        self._tally.refused.update(refused)

    def read(self, now: float) -> EdgeTally:
        tally, self._tally = self._tally, EdgeTally(now)
        if self._shell is not None:
            self._add(tally, self._shell.figures())
        return tally

    def _add(self, tally: EdgeTally, figures: EdgeFigures) -> None:
        told = self._told
        tally.connections = figures.connections
        tally.opened += figures.opened - told.opened
        tally.received_octets += figures.received_octets - told.received_octets
        tally.sent_octets += figures.sent_octets - told.sent_octets
        refused = Counter(figures.refused)
        tally.refused += refused - told.refused
        self._told = EdgeTally(
            tally.since, 0, figures.opened, figures.received_octets, figures.sent_octets, refused
        )

    def put_back(self, tally: EdgeTally) -> None:
        tally.refused.update(self._tally.refused)
        self._tally = tally

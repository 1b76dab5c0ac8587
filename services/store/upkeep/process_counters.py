"""Count a process's connections, their octets, and refusals that concern no queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


class EdgeFigures(Protocol):
    """Counts of an edge process since it started."""

    @property
    def connections(self) -> int:
        """Connections that are open now."""

    @property
    def opened(self) -> int:
        """Connections opened."""

    @property
    def received_octets(self) -> int:
        """Octets read from peers."""

    @property
    def sent_octets(self) -> int:
        """Octets written to peers."""

    @property
    def refused(self) -> Mapping[str, int]:
        """Refusals without a request to the store, by reason."""


@runtime_checkable
class Shell(Protocol):
    """An observer of the store that knows the process's connections."""

    def figures(self) -> EdgeFigures:
        """Return the present counts."""


@dataclass(slots=True)
class EdgeTally:
    """Counts since `since` (monotonic)."""

    since: float
    connections: int = 0
    opened: int = 0
    received_octets: int = 0
    sent_octets: int = 0
    refused: Counter[str] = field(default_factory=Counter)


class ProcessCounters:
    """The process's tally, which is read and put back as those of queues. shell: None without connections."""

    def __init__(self, shell: Shell | None, now: float) -> None:
        self._shell = shell
        self._before = EdgeTally(now)  # the shell's counts at the last `read`
        self._tally = EdgeTally(now)

    def refuse(self, refused: Mapping[str, int]) -> None:
        """Count refusals by reason."""
        self._tally.refused.update(refused)

    def read(self, now: float) -> EdgeTally:
        """Take the tally out; a new one begins now (monotonic)."""
        tally, self._tally = self._tally, EdgeTally(now)
        if self._shell is not None:
            self._add(tally, self._shell.figures())
        return tally

    def _add(self, tally: EdgeTally, figures: EdgeFigures) -> None:
        before = self._before
        tally.connections = figures.connections
        tally.opened += figures.opened - before.opened
        tally.received_octets += figures.received_octets - before.received_octets
        tally.sent_octets += figures.sent_octets - before.sent_octets
        refused = Counter(figures.refused)
        tally.refused += refused - before.refused
        self._before = EdgeTally(
            tally.since, 0, figures.opened, figures.received_octets, figures.sent_octets, refused
        )

    def put_back(self, tally: EdgeTally) -> None:
        """Put back a tally that could not be stored."""
        tally.refused.update(self._tally.refused)
        self._tally = tally

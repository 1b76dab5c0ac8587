"""The domains that a process has used or looked at: each is made once, and all alike."""

from __future__ import annotations

from collections.abc import Callable

from services.store.pipeline.domain import Domain
from services.store.pipeline.metering import Hear


class Domains:
    """By name."""

    def __init__(self, make: Callable[[str], Domain]) -> None:
        self._make = make
        self._domains: dict[str, Domain] = {}
        self._is_sweeping = self._keeps_tallies = False
        self._hear: Hear | None = None

    def get(self, name: str) -> Domain:
        """The domain without a session: enough to look, and for dead letters."""
        found = self._domains.get(name)
        if found is None:
            found = self._domains[name] = self._make(name)
            if self._is_sweeping:
                found.start_sweeping()
            if self._keeps_tallies:
                found.tallies.keep()
            if self._hear is not None:
                found.tallies.meter(self._hear)
        return found

    def open(self, name: str) -> Domain:
        """The domain, its session being opened."""
        found = self.get(name)
        found.start()
        return found

    def known(self, name: str) -> Domain | None:
        """The domain, if this process has used or looked at it."""
        return self._domains.get(name)

    def all(self) -> list[Domain]:
        """Those that this process has used or looked at."""
        return [*self._domains.values()]

    # what holds for those there are, and for those to come

    def start_sweeping(self) -> None:
        """Sweep dead sessions from now on."""
        self._is_sweeping = True
        for domain in self.all():
            domain.start_sweeping()

    def keep_tallies(self) -> None:
        """Keep what the domains count from now on: it is read."""
        self._keeps_tallies = True
        for domain in self.all():
            domain.tallies.keep()

    def meter(self, hear: Hear) -> None:
        """Call `hear` with what the domains count, whenever `tell` is called."""
        self._hear = hear

    def tell(self) -> None:
        """Tell what was counted since the last time."""
        for domain in self.all():
            domain.tallies.tell()

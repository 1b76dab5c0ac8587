"""The domains that a process uses."""

from __future__ import annotations

from collections.abc import Callable

from services.store.pipeline.domain import Domain
from services.store.pipeline.metering import ReportActivity


class Domains:
    """A cache of domains by name, with settings that also apply to domains added later."""

    def __init__(self, make: Callable[[str], Domain]) -> None:
        self._make = make
        self._domains: dict[str, Domain] = {}
        self._is_sweeping = self._keeps_tallies = False
        self._report_activity: ReportActivity | None = None

    def get(self, name: str) -> Domain:
        """Return the domain without opening a session: enough for reads and for dead letters."""
        found = self._domains.get(name)
        if found is None:
            found = self._domains[name] = self._make(name)
            if self._is_sweeping:
                found.start_sweeping()
            if self._keeps_tallies:
                found.tallies.keep()
            if self._report_activity is not None:
                found.tallies.meter(self._report_activity)
        return found

    def open(self, name: str) -> Domain:
        """Return the domain and open its session."""
        found = self.get(name)
        found.start()
        return found

    def known(self, name: str) -> Domain | None:
        """Return the domain if it is cached."""
        return self._domains.get(name)

    def all(self) -> list[Domain]:
        """Return the cached domains."""
        return [*self._domains.values()]

    def start_sweeping(self) -> None:
        """Sweep the domains' dead sessions from now on."""
        self._is_sweeping = True
        for domain in self.all():
            domain.start_sweeping()

    def keep_tallies(self) -> None:
        """Keep tallies for the sampler, which reads them from now on."""
        self._keeps_tallies = True
        for domain in self.all():
            domain.tallies.keep()

    def meter(self, report_activity: ReportActivity) -> None:
        """Pass the domains' activity to `report_activity` whenever `report` is called."""
        self._report_activity = report_activity

    def report(self) -> None:
        """Report the activity since the last call."""
        for domain in self.all():
            domain.tallies.report()

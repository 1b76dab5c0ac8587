"""Readiness: whether a process can serve requests, decided from the list of what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Need = Callable[[], str | None]


class Readiness:
    """What a process needs, by name.

    Each need is a check that returns None while it is met, or the reason why it is not. Only what every request of this
    process needs belongs here: what some queues need makes requests to these queues fail, and no others.
    """

    def __init__(self, **needs: Need) -> None:
        self.needs: Mapping[str, Need] = needs

    def unready(self) -> str | None:
        """Return why requests cannot be served now, or None. The first need that is not met gives the reason."""
        return next((reason for need in self.needs.values() if (reason := need()) is not None), None)

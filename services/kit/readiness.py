"""Decide whether a process can serve requests, from the list of its needs."""

from __future__ import annotations

from collections.abc import Callable

Need = Callable[[], str | None]


class Readiness:
    """The needs of a process, by name.

    Each need is a check that returns None while it is met, or the reason why it is not. It holds only what all requests
    need: what some queues need makes only the requests to these queues fail.
    """

    def __init__(self, *parts: Readiness, **needs: Need) -> None:
        """Declare the needs of `parts` first, then those of its own."""
        self.needs: dict[str, Need] = {}
        for part in parts:
            self.include(part)
        self._declare(needs)

    def include(self, part: Readiness) -> None:
        """Declare the needs of a part of this process as well."""
        self._declare(part.needs)

    def _declare(self, needs: dict[str, Need]) -> None:
        for name, need in needs.items():
            if self.needs.setdefault(name, need) is not need:
                raise ValueError(f"two needs are named {name!r}")

    def unready(self) -> str | None:
        """Return the name of the first need that is not met and the reason, or None."""
        for name, need in self.needs.items():
            try:
                reason = need()
            except Exception as error:  # noqa: BLE001 - unknown, so not met
                reason = f"the check failed: {error!r}"
            if reason is not None:
                return f"{name}: {reason}"
        return None

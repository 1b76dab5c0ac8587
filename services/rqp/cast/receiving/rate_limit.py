"""Limit the rate of requests per address, in bounded memory even if addresses are forged."""

from __future__ import annotations

from collections import OrderedDict

ADDRESSES = 10_000  # remembered at once; the one silent for longest is forgotten first


class RateLimit:
    """A token bucket for each address, with a burst of one second."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        # address -> (tokens, at which time)
        self._tokens: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many addresses are remembered."""
        return len(self._tokens)

    def take(self, address: str, now: float) -> bool:
        """Take a token. Return whether there was one."""
        left, at = self._tokens.pop(address, (float(self._per_second), now))
        left = min(left + (now - at) * self._per_second, self._per_second)
        may = left >= 1
        self._tokens[address] = (left - may, now)
        if len(self._tokens) > ADDRESSES:
            self._tokens.popitem(last=False)
        return may

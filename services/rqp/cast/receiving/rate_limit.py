"""How much one address may ask for: floods cost bounded work, and bounded memory, also from forged addresses."""

from __future__ import annotations

from collections import OrderedDict

ADDRESSES = 10_000  # remembered at once; whoever was silent longest is forgotten first


class RateLimit:
    """So many a second for each address, and as many at once."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._left: OrderedDict[str, tuple[float, float]] = (
            OrderedDict()
        )  # address -> (how many, at which time)

    def __len__(self) -> int:
        """How many addresses are remembered."""
        return len(self._left)

    def take(self, address: str, now: float) -> bool:
        """Whether it may have one more."""
        left, at = self._left.pop(address, (float(self._per_second), now))
        left = min(left + (now - at) * self._per_second, self._per_second)
        may = left >= 1
        self._left[address] = (left - may, now)
        if len(self._left) > ADDRESSES:
            self._left.popitem(last=False)
        return may

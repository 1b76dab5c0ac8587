"""Propose leaders while none is known (ring.md 4.6)."""

from __future__ import annotations

from collections.abc import Callable

from protos.ring.table import is_due
from protos.ring.times import Times

ANSWER_S = 3.0  # a FIND within this time answers a proposal
SPREAD = 16  # different times at which nodes start, by their names: mostly one proposes for all


class Vacancy:
    """The time without a known leader. Times in the caller's seconds.

    `propose` sends Leader(name); `candidates` returns names of others that may be here; `lost` is called when no
    proposal had an effect for `lost_s`.
    """

    __slots__ = (
        "_candidates",
        "_due",
        "_is_others_turn",
        "_last",
        "_last_at",
        "_lost",
        "_lost_due",
        "_lost_s",
        "_me",
        "_propose",
        "_tried",
        "_wait_s",
    )

    def __init__(
        self,
        me: bytes,
        times: Times,
        propose: Callable[[bytes], None],
        candidates: Callable[[float], list[bytes]],
        lost: Callable[[float], None],
    ) -> None:
        self._me = me
        self._wait_s = times.vacant_s
        self._lost_s = times.lost_s
        self._lost = lost
        self._lost_due = 0.0
        self._propose = propose
        self._candidates = candidates
        self._due: float | None = None
        self._tried: set[bytes] = set()
        self._is_others_turn = False
        self._last: bytes | None = None  # the last name proposed for another node
        self._last_at = 0.0

    @property
    def is_on(self) -> bool:
        """True while no leader is known."""
        return self._due is not None

    def begin(self, now: float, waited: bool = False) -> None:
        """Start, unless it has started. `waited`: the first proposal need not wait."""
        if self._due is None:
            self._tried.clear()
            self._is_others_turn = False
            self._last = None
            self._lost_due = now + self._lost_s
            self._due = now + self._wait_s * (sum(self._me) % SPREAD / SPREAD + (not waited))

    def end(self) -> None:
        """Stop: a leader is known."""
        self._due = None

    def is_not_lost(self, now: float) -> None:
        """Note that a node may lead, though it is not heard."""
        self._lost_due = now + self._lost_s

    def has_just_proposed(self, name: bytes, now: float) -> bool:
        """Return whether a FIND of `name` answers this node's last proposal."""
        return self.is_on and name == self._last and now - self._last_at <= ANSWER_S

    def deadline(self) -> float | None:
        """Return when the next proposal is due."""
        return self._due

    def on_time(self, now: float) -> None:
        """Propose this node and another one."""
        if not is_due(self._due, now):
            return
        self._due = now + self._wait_s
        if now >= self._lost_due:
            self._lost_due = now + self._lost_s
            self._lost(now)
        self._propose(self._me)
        names = self._candidates(now)
        if names:
            self._last, self._last_at = self._choose(names), now
            self._propose(self._last)

    def _choose(self, names: list[bytes]) -> bytes:
        """Return the greatest name, as all nodes choose it, and every other time another one, as it may not answer."""
        greatest = max(names)
        is_others_turn, self._is_others_turn = self._is_others_turn, not self._is_others_turn
        untried = [name for name in names if name not in self._tried and name != greatest]
        if not is_others_turn or len(names) == 1:
            return greatest
        if not untried:
            self._tried.clear()
            untried = [name for name in names if name != greatest]
        self._tried.add(max(untried))
        return max(untried)

"""What is kept with a certain message in the store, so that any replica can carry on (rqp_cast.md 2.3, 4.2).

    cast1:<id>:<address>:<failures>:<receiver>:<first whole send, ms>:<not before, ms>

One text without spaces, as the store keeps notes; `-` stands for what is not there. Times are of the store's clock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from protos.rqp_cast import Kept
from services.store.model import Clock, now

VERSION = "cast1"
NOTHING = "-"
_NOTE = re.compile(
    VERSION + r":([1-9]\d{0,9}):([\d.]{7,15}):(\d{1,9}):([\d.]{7,15}|-):(\d{1,15}|-):(\d{1,15}|-)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Note:
    """`address` is the stable one of the agent that gave the id."""

    id: int
    address: str
    kept: Kept

    def text(self, clock: Clock) -> str:
        kept = self.kept
        fields = (self.id, self.address, kept.failures, kept.receiver)
        times = (None if at is None else clock.to_ms(at) for at in (kept.first_whole_at, kept.not_before))
        return ":".join((VERSION, *(NOTHING if field is None else str(field) for field in (*fields, *times))))

    @classmethod
    def parse(cls, text: str, clock: Clock, max_backoff_s: float) -> Note | None:
        """None for a text of another version, or that somebody else wrote.

        Times further ahead than they are ever set were noted before the store's clock was stepped back.
        """
        found = _NOTE.fullmatch(text)
        if found is None:
            return None
        receiver, first_ms, not_before_ms = (None if part == NOTHING else part for part in found.groups()[3:])
        kept = Kept(
            int(found[3]),
            receiver,
            min(clock.to_s(int(first_ms)), now()) if first_ms else None,
            min(clock.to_s(int(not_before_ms)), now() + max_backoff_s) if not_before_ms else None,
        )
        return cls(int(found[1]), found[2], kept)

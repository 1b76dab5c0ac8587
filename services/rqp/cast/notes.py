"""Encode the state of sending a certain message as its note in the store, so that any replica can go on.

See rqp_cast.md 2.3, 4.2. The format is

    cast1:<id>:<address>:<failures>:<receiver>:<first whole send, ms>:<not before, ms>

`-` stands for an absent value. Times are of the store's clock.
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
    """The state of one message. `address`: the stable address of the agent that gave the id."""

    id: int
    address: str
    kept: Kept

    def text(self, clock: Clock) -> str:
        """Encode the note."""
        kept = self.kept
        fields = (self.id, self.address, kept.failures, kept.receiver)
        times = (None if at is None else clock.to_ms(at) for at in (kept.first_whole_at, kept.not_before))
        return ":".join((VERSION, *(NOTHING if field is None else str(field) for field in (*fields, *times))))

    @classmethod
    def parse(cls, text: str, clock: Clock, max_backoff_s: float) -> Note | None:
        """Parse a note; None if it has another format or version.

        Times too far ahead were written before the store's clock was stepped back; they are clamped.
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

"""Dead letters of a day, as the store writes them: failure, origin and reason are drawn with a fixed seed.

Each queue has all kinds, reasons and origins. Kinds differ in letters, because a fingerprint ignores digits; and some
bodies are unique.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.analytics.filling import Day, template

SEED = 8
REASONS = (b"expired", b"attempts", b"rejected")
EDGES = (b"tmq", b"ring", b"mca")  # the first word of an origin
ORIGINS = 60  # peers that put messages in
CAUSES = (
    b"no customer",
    b"no stock of part",
    b"no price for part",
    b"timeout of carrier",
    b"bad field in line",
)
STEPS = (b"booking", b"billing", b"packing", b"posting", b"filing", b"mailing", b"sorting", b"pricing")
KINDS = tuple((step, cause) for step in STEPS for cause in CAUSES)  # of failures
UNIQUE = 0.05  # share of unique bodies
TAG, LETTERS = 6, b"ghijklmnopqrstuvwxyz"  # characters of a unique body's tag: none is a hexadecimal digit
COMMON = LETTERS[:1] * TAG

Draws = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The draws of each letter, by its number."""

    kind: Draws
    reason: Draws
    origin: Draws
    is_unique: npt.NDArray[np.bool_]

    def bodies(self) -> int:
        """Return the number of fingerprints to expect."""
        return len(np.unique(self.kind[~self.is_unique])) + int(self.is_unique.sum())


def drawn(letters: int) -> Drawn:
    """Draw letters; the same number gives the same draws."""
    chance = np.random.default_rng(SEED)
    kind, reason, origin = (
        chance.integers(0, of, letters, np.uint8) for of in (len(KINDS), len(REASONS), ORIGINS)
    )
    return Drawn(kind, reason, origin, chance.random(letters) < UNIQUE)


def letters(keys: list[tuple[str, str]], day: Day) -> Iterator[bytes]:
    """Yield one XADD for each letter. keys: each queue's name, and the key of its dead letters."""
    step = day.ms / day.letters
    made = _Parts(keys)
    draws = drawn(day.letters)
    columns = (each.tolist() for each in (draws.kind, draws.reason, draws.origin, draws.is_unique))
    for at, (kind, reason, origin, is_unique) in enumerate(zip(*columns, strict=True)):
        died = day.begin_ms + int(at * step)
        number = at % 1_000_000
        whole = made.queues[at % len(keys)] + made.reasons[reason] + made.origins[origin] + made.kinds[kind]
        age = 1000 + at * 7919 % 100_000
        yield whole % (died, died - age, died, number, number, tag(at) if is_unique else COMMON)


def tag(number: int) -> bytes:
    """Return a tag of letters, unique for the number."""
    number, found = number + 1, bytearray()
    for _ in range(TAG):
        number, place = divmod(number, len(LETTERS))
        found.append(LETTERS[place])
    return bytes(found)


class _Parts:
    """Commands in parts: only the first part has the number of words."""

    def __init__(self, keys: list[tuple[str, str]]) -> None:
        same = {b"entry": b"1-1", b"acquired": b"5", b"failed": b"5", b"first": b"0", b"last": b"0"}
        more = 4  # fields in the parts that follow
        self.queues = [
            template(
                (b"XADD", key.encode(), b"%13d-*"),
                {b"queue": name.encode(), b"enqueued": b"%13d", b"died": b"%13d", **same},
                more,
            )
            for name, key in keys
        ]
        self.reasons = [_field({b"reason": reason}) for reason in REASONS]
        self.origins = [
            _field({b"origin": b"%s 10.0.0.%d" % (EDGES[each % len(EDGES)], each)}) for each in range(ORIGINS)
        ]
        self.kinds = [_field({b"error": _error(*kind), b"body": _body(*kind)}) for kind in KINDS]


def _field(fields: Mapping[bytes, bytes]) -> bytes:
    return template((), fields)


def _error(step: bytes, cause: bytes) -> bytes:
    return b"%s: %s %%06d" % (step, cause)


def _body(step: bytes, cause: bytes) -> bytes:
    words = (step, cause, b"%%%ds" % TAG, b"x" * 40)
    return b'{"order": %%06d, "step": "%s", "why": "%s", "for": "%s", "text": "%s"}' % words

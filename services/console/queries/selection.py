"""Which dead letters a request means."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import aclosing
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from services.console.contract.moments import Moment
from services.console.contract.shape import Shape
from services.console.queries.patterns import LONGEST, parse_pattern
from services.store import DeadLetters, Filter
from services.store.model import ID, Duration, QueueName

MOST_IDS = 10_000
MOST_REASONS = 50
COUNT_S = 5.0  # a dry run ends after this, and says so
REASONS_S = 0.2  # of all there are the number is known: only what the first of them died of is looked at
LONGEST_ORIGIN = 255
Id = Annotated[str, Field(pattern=f"^{ID.pattern}$", max_length=41)]
Reason = Annotated[str, Field(min_length=1, max_length=63)]


def _must_be_text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("write it in ISO 8601 with its offset, as in 2026-11-25T15:00:00Z")
    return value


Until = Annotated[Moment, BeforeValidator(_must_be_text)]


class Conditions(Shape):
    """What is asked of a dead letter beside its reason, in a query and in a document."""

    origin: str = Field("", max_length=LONGEST_ORIGIN, description="a part of their origin")
    older_than: Duration = Field(0, description="dead for so long, as in 30m")
    body: Annotated[
        str, Field(max_length=LONGEST, description="a regular expression of RE2, over octets")
    ] = ""

    def of_reasons(self, reasons: tuple[str, ...]) -> Filter:
        """All that is said has to hold. Raises Problem."""
        pattern = parse_pattern(self.body) if self.body else None
        return Filter(reasons, self.origin, self.older_than, pattern)


class LetterFilter(Conditions):
    """All that is said has to hold."""

    reasons: tuple[Reason, ...] = Field(
        (), max_length=MOST_REASONS, description="what they died of; none: anything"
    )

    def wanted(self) -> Filter:
        """Raises Problem."""
        return self.of_reasons(self.reasons)


class Selection(Shape):
    """One of `filter`, `ids` and `all`: no choice is no way to say all."""

    filter: LetterFilter | None = None
    ids: tuple[Id, ...] = Field((), max_length=MOST_IDS)
    all: bool = Field(False, description="all of them")
    dry_run: bool = Field(False, description="only say how many, and what they had died of")
    until: Until = Field(
        0, description="as a dry run told it: what died later, or was not dead for long enough, is not meant"
    )

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        said = [self.filter is not None and self.filter != LetterFilter(), bool(self.ids), self.all]
        if sum(said) != 1:
            raise ValueError("say which ones: a filter that says something, or ids, or all: true")
        return self

    def wanted(self) -> Filter:
        """Raises Problem."""
        if self.ids:
            return Filter(ids=self.ids, died_until_ms=self.until)
        wanted = self.filter.wanted() if self.filter is not None else Filter()
        return wanted.as_of(self.until) if self.until else wanted


class Redrive(Selection):
    """Which ones, where, and how fast."""

    target: QueueName | None = Field(
        None, description="another queue of the same domain; none: where they died"
    )
    rate: int | None = Field(None, ge=1, le=1_000_000, description="at most so many a second; none: no bound")


class Purge(Selection):
    """Which ones."""


async def count(letters: DeadLetters, wanted: Filter) -> dict[str, Any]:
    """How many are meant, by what they died of; ended after a while. How many there are in all nobody has to count."""
    if wanted != Filter():
        reasons, complete = await _reasons(letters, wanted, COUNT_S)
        return _told(reasons.total(), reasons, complete)
    number = await letters.count()
    reasons, _ = await _reasons(letters, wanted, REASONS_S)
    return _told(max(number, reasons.total()), reasons, True)  # some may have died meanwhile


async def _reasons(letters: DeadLetters, wanted: Filter, within_s: float) -> tuple[Counter[str], bool]:
    """What those died of that were found in time, the oldest first; whether these are all."""
    reasons: Counter[str] = Counter()
    end = time.monotonic() + within_s
    async with aclosing(letters.steps(wanted, octets=0)) as steps:  # type: ignore[type-var]
        async for found in steps:
            reasons.update(letter.reason for letter in found)
            if time.monotonic() > end:
                return reasons, False
    return reasons, True


def _told(matched: int, reasons: Counter[str], complete: bool) -> dict[str, Any]:
    return {
        "matched": matched,
        "looked": reasons.total(),
        "reasons": dict(reasons.most_common()),
        "complete": complete,
    }

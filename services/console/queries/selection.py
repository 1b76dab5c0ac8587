"""Models of selections of dead letters, and counting them for dry runs."""

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

MAX_IDS = 10_000
MAX_REASONS = 50
COUNT_S = 5.0  # timeout of a dry run with a filter
REASONS_S = 0.2  # the same without: the number is known, and the reasons of the oldest suffice
LONGEST_ORIGIN = 255
Id = Annotated[str, Field(pattern=f"^{ID.pattern}$", max_length=41)]
Reason = Annotated[str, Field(min_length=1, max_length=63)]


def _must_be_text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be an ISO 8601 time with an offset, as 2026-11-25T15:00:00Z")
    return value


Until = Annotated[Moment, BeforeValidator(_must_be_text)]


class Conditions(Shape):
    """Conditions on dead letters other than the reason."""

    origin: str = Field("", max_length=LONGEST_ORIGIN, description="part of the origin")
    older_than: Duration = Field(0, description="died at least so long ago, as 30m")
    body: Annotated[str, Field(max_length=LONGEST, description="RE2 regular expression over octets")] = ""

    def of_reasons(self, reasons: tuple[str, ...]) -> Filter:
        """Return the filter; all conditions have to match. Raises Problem for a bad pattern."""
        pattern = parse_pattern(self.body) if self.body else None
        return Filter(reasons, self.origin, self.older_than, pattern)


class LetterFilter(Conditions):
    """A filter; all conditions have to match."""

    reasons: tuple[Reason, ...] = Field((), max_length=MAX_REASONS, description="reasons of death; none: any")

    def wanted(self) -> Filter:
        """Return the filter. Raises Problem for a bad pattern."""
        return self.of_reasons(self.reasons)


class Selection(Shape):
    """A selection by exactly one of `filter`, `ids` and `all`."""

    filter: LetterFilter | None = None
    ids: tuple[Id, ...] = Field((), max_length=MAX_IDS)
    all: bool = Field(False, description="all dead letters of the queue")
    dry_run: bool = Field(False, description="only count, by reason")
    until: Until = Field(
        0,
        description="value returned by a dry run: what died later, or was not old enough by then, is left out",
    )

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        given = [self.filter is not None and self.filter != LetterFilter(), bool(self.ids), self.all]
        if sum(given) != 1:
            raise ValueError("set exactly one of filter (with a condition), ids, and all: true")
        return self

    def wanted(self) -> Filter:
        """Return the filter. Raises Problem for a bad pattern."""
        if self.ids:
            return Filter(ids=self.ids, died_until_ms=self.until)
        wanted = self.filter.wanted() if self.filter is not None else Filter()
        return wanted.as_of(self.until) if self.until else wanted


class Redrive(Selection):
    """A redrive: a selection, a target and a rate limit."""

    target: QueueName | None = Field(
        None, description="another queue of the same domain; none: the queue itself"
    )
    rate: int | None = Field(
        None, ge=1, le=1_000_000, description="messages per second at most; none: unlimited"
    )


class Purge(Selection):
    """A purge of a selection."""


async def count(letters: DeadLetters, wanted: Filter) -> dict[str, Any]:
    """Count dead letters by reason, with a timeout."""
    if wanted != Filter():
        reasons, complete = await _reasons(letters, wanted, COUNT_S)
        return _document(reasons.total(), reasons, complete)
    number = await letters.count()
    reasons, _ = await _reasons(letters, wanted, REASONS_S)
    return _document(max(number, reasons.total()), reasons, True)  # more may have died meanwhile


async def _reasons(letters: DeadLetters, wanted: Filter, within_s: float) -> tuple[Counter[str], bool]:
    """Return the reasons of those found in time, oldest first, and whether these are all."""
    reasons: Counter[str] = Counter()
    end = time.monotonic() + within_s
    async with aclosing(letters.steps(wanted, octets=0)) as steps:  # type: ignore[type-var]
        async for found in steps:
            reasons.update(letter.reason for letter in found)
            if time.monotonic() > end:
                return reasons, False
    return reasons, True


def _document(matched: int, reasons: Counter[str], complete: bool) -> dict[str, Any]:
    return {
        "matched": matched,
        "looked": reasons.total(),
        "reasons": dict(reasons.most_common()),
        "complete": complete,
    }

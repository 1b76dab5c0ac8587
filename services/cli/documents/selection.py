"""Options that select dead letters."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import click

from services.cli.terminal.exits import not_found, usage
from services.cli.terminal.output import Output
from services.store import DeadLetters, Filter
from services.store.model import DURATION, UNIT_MS, is_id


def _duration(_: click.Context, __: click.Parameter, value: str | None) -> int:
    if value is None:
        return 0
    found = DURATION.match(value)
    if not found:
        raise click.BadParameter("write it as a number with ms, s, m, h or d, such as 30m")
    return int(found[1]) * UNIT_MS[found[2]]


def _pattern(_: click.Context, __: click.Parameter, value: str | None) -> re.Pattern[bytes] | None:
    try:
        return re.compile(value.encode("utf-8", "surrogateescape")) if value is not None else None
    except re.error as error:
        raise click.BadParameter(f"not a regular expression: {error}") from None


def _identifier(_: click.Context, __: click.Parameter, value: str | None) -> str:
    if value is not None and not is_id(value):
        raise click.BadParameter("it must be the id of a dead letter, as in `penstock dead list`")
    return value or ""


_FILTERS = (
    click.option("--reason", "reasons", multiple=True, help="only letters with this reason; repeatable"),
    click.option(
        "--older-than",
        "older_than_ms",
        callback=_duration,
        metavar="AGE",
        help="only letters dead for at least this long, such as 30m",
    ),
    click.option("--origin", default="", help="only letters whose origin contains this"),
    click.option(
        "--match", "body", callback=_pattern, metavar="REGEX", help="only letters whose body matches"
    ),
    click.option(
        "--until",
        callback=_identifier,
        metavar="ID",
        help="only letters up to this id, as `export` prints it",
    ),
)


def filtered(work: Callable[..., Any]) -> Callable[..., Any]:
    """Add the five filter options, passed as one Filter `letter_filter`."""

    @functools.wraps(work)
    def command(
        *arguments: Any,
        reasons: tuple[str, ...],
        older_than_ms: int,
        origin: str,
        body: Any,
        until: str,
        **values: Any,
    ) -> Any:
        ids = tuple(values.get("ids", ()))
        letter_filter = Filter(reasons, origin, older_than_ms, body, ids, until=until)
        return work(*arguments, letter_filter=letter_filter, **values)

    for option in reversed(_FILTERS):
        command = option(command)
    return command


def selection(everything: bool, letter_filter: Filter) -> Filter:
    """Check that either --all or a filter is given; no filter does not mean all. Raises Failure."""
    if everything and letter_filter != Filter():
        raise usage("--all excludes filters and ids: use one or the other")
    if not everything and letter_filter == Filter():
        raise usage(
            "select letters with ids, --reason, --older-than, --origin, --match or --until, or use --all"
        )
    return letter_filter


async def reasons_of(output: Output, letters: DeadLetters, letter_filter: Filter) -> Counter[str]:
    """Count the selected letters by reason."""
    reasons: Counter[str] = Counter()
    with output.progress("reading", None) as advance:
        async for letter in letters.matching(letter_filter, octets=0):
            reasons[letter.reason] += 1
            advance(1)
    return reasons


def require_matches(number: int, queue: str) -> None:
    """Raise Failure if no letter was selected."""
    if not number:
        raise not_found(f"queue {queue!r} has no matching dead letter")

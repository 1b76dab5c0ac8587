"""Which dead letters a command means."""

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
        raise click.BadParameter("write it as a number and ms, s, m, h or d, as in 30m")
    return int(found[1]) * UNIT_MS[found[2]]


def _pattern(_: click.Context, __: click.Parameter, value: str | None) -> re.Pattern[bytes] | None:
    try:
        return re.compile(value.encode("utf-8", "surrogateescape")) if value is not None else None
    except re.error as error:
        raise click.BadParameter(f"no regular expression: {error}") from None


def _identifier(_: click.Context, __: click.Parameter, value: str | None) -> str:
    if value is not None and not is_id(value):
        raise click.BadParameter("give the id of a dead letter, as `penstock dead list` shows it")
    return value or ""


_FILTERS = (
    click.option("--reason", "reasons", multiple=True, help="only those that died of this; repeatable"),
    click.option(
        "--older-than", "older_than_ms", callback=_duration, metavar="AGE", help="dead for so long, as in 30m"
    ),
    click.option("--origin", default="", help="only those whose origin contains this"),
    click.option("--match", "body", callback=_pattern, metavar="REGEX", help="only those whose body matches"),
    click.option(
        "--until",
        callback=_identifier,
        metavar="ID",
        help="only this one and those that died before it, as `export` tells",
    ),
)


def filtered(work: Callable[..., Any]) -> Callable[..., Any]:
    """Turns the five filter options into one `wanted`."""

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
        wanted = Filter(reasons, origin, older_than_ms, body, ids, until=until)
        return work(*arguments, wanted=wanted, **values)

    for option in reversed(_FILTERS):
        command = option(command)
    return command


def selection(everything: bool, wanted: Filter) -> Filter:
    """No choice at all is no way to say 'all'."""
    if everything and wanted != Filter():
        raise usage("say --all, or which ones: not both")
    if not everything and wanted == Filter():
        raise usage("say which ones: ids, --reason, --older-than, --origin, --match, --until; or --all")
    return wanted


async def reasons_of(output: Output, letters: DeadLetters, wanted: Filter) -> Counter[str]:
    """How many are meant, by what they died of."""
    reasons: Counter[str] = Counter()
    with output.progress("reading", None) as advance:
        async for letter in letters.matching(wanted, octets=0):
            reasons[letter.reason] += 1
            advance(1)
    return reasons


def must_be_some(number: int, queue: str) -> None:
    if not number:
        raise not_found(f"queue {queue!r} has no such dead letter")

"""penstock log: show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from services.cli.framework.command import store_command
from services.cli.terminal.exits import Exit, Failure
from services.cli.terminal.output import Output
from services.cli.terminal.text import age, count
from services.store import Queue, Store
from services.store.log import Held, Log, LogSpec, Neighbour, Origin, Place, Replica, parse_place
from services.store.model import LOG_DOMAIN, Intervals, TextBinding, format_duration

SHOWN_SPANS = 3  # of a row of numbers in a table
COUNTERS = {  # of the log's hash (lua/schema.lua), by the name that they have here
    "incarnations": "incarnations",
    "sent": "sent",
    "accepted": "accepted",
    "skipped": "skipped",
    "trimmed": "trimmed_messages",
    "gaps": "gaps",
    "copies_lost": "copies_lost",
}


@click.group()
def log() -> None:
    """Look at the log of the text pub/sub service."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is written down of the log. Asked in several questions: what comes meanwhile may be in some of them only."""

    figures: dict[str, str]  # of the log's hash
    entries: int
    oldest_ms: int  # when the oldest entry was stored; 0: there is none
    bound: int  # octets of memory
    held: Held
    gone: Held
    neighbours: list[Neighbour]
    queues: list[Queue]
    now_ms: int

    @property
    def own(self) -> Origin:
        return self.figures.get("store", "").encode(), self.figures.get("inc", "").encode()

    @property
    def head(self) -> Place:
        return Place(self.number("era"), self.number("serial"))

    @property
    def messages(self) -> int:
        return self.head.serial - parse_place(self.figures.get("trimmed", "0-0")).serial

    @property
    def oldest_age_ms(self) -> int | None:
        return self.now_ms - self.oldest_ms if self.oldest_ms else None

    def number(self, name: str) -> int:
        return int(self.figures.get(name, 0))


@log.command()
@store_command
async def show(store: Store, output: Output) -> None:
    """Show what the log holds, of which stores, and who is linked with it.

    Changes nothing. Ends with 4 if no text pub/sub server has used this store yet.
    """
    look = await _look(store)
    if output.as_json:
        output.record(_described(look))
        return
    output.pairs(_shown(look))
    origins = [_origin_row(look, origin) for origin in look.held]
    _table(output, ("origin", "incarnation", "held#", "gone#", "numbers held"), origins)
    links = [[one.store.decode(), one.seen or "-", one.follower or "nobody"] for one in look.neighbours]
    _table(output, ("neighbour", "its log seen up to", "followed by"), links)
    queues = [
        [one.name, " ".join(_binding(one).subscribe), _binding(one).publish or "-"] for one in look.queues
    ]
    _table(output, ("queue", "subscribes to", "publishes as"), queues)


def _table(output: Output, columns: tuple[str, ...], rows: list[list[str]]) -> None:
    if rows:
        output.line("")
        output.table(columns, rows)


# asking ------------------------------------------------------------------------------------------------------------


async def _look(store: Store) -> Look:
    """Raises Failure where there is no log."""
    source = Log(store.get_domain(LOG_DOMAIN), LogSpec())  # what it keeps is read, not said
    figures = await source.figures()
    if "level" not in figures:
        await store.registry.epoch()  # a store that is not set up is another matter
        raise Failure(
            Exit.NOT_FOUND,
            "no_log",
            "no text pub/sub server has used this store yet: start one with `penstock serve pubsub`",
        )
    replica = Replica(source)
    entries, oldest_ms = await source.size()
    held, gone = await replica.numbers()
    own, given = (
        (figures.get("store", "").encode(), figures.get("inc", "").encode()),
        int(figures.get("next", 1)),
    )
    if given > 1:
        held = {own: Intervals.of([(1, given - 1)]), **held}
    return Look(
        figures,
        entries,
        oldest_ms,
        _bound(int(figures["max_bytes"]), await source.bound()),
        held,
        gone,
        await replica.links(),
        sorted([one async for one in store.listing.queues() if _is_bound(one)], key=lambda one: one.name),
        await store.now_ms(),
    )


def _bound(said: int, of_server: int) -> int:
    return min(said, of_server) if of_server else said


def _binding(queue: Queue) -> TextBinding:
    return queue.spec.bindings.text


def _is_bound(queue: Queue) -> bool:
    return _binding(queue) != TextBinding()


# telling -----------------------------------------------------------------------------------------------------------


def _described(look: Look) -> dict[str, Any]:
    """All of it for programs."""
    store, incarnation = look.own
    return {
        "store": store.decode(),
        "incarnation": incarnation.decode(),
        "head": str(look.head),
        "messages": look.messages,
        "entries": look.entries,
        "bytes": look.number("bytes"),
        "oldest_age_ms": look.oldest_age_ms,
        "ack_level": look.figures["level"],
        "retention_ms": look.number("retention"),
        "max_bytes": look.number("max_bytes"),
        "bound_bytes": look.bound,
        **{name: look.number(field) for name, field in COUNTERS.items()},
        "origins": [_origin(look, origin) for origin in look.held],
        "neighbours": [
            {"store": one.store.decode(), "seen": one.seen, "follower": one.follower}
            for one in look.neighbours
        ],
        "queues": [
            {"name": one.name, "subscribe": list(_binding(one).subscribe), "publish": _binding(one).publish}
            for one in look.queues
        ],
    }


def _origin(look: Look, origin: Origin) -> dict[str, Any]:
    store, incarnation = origin
    return {
        "store": store.decode(),
        "incarnation": incarnation.decode(),
        "own": store == look.own[0],
        "held": look.held[origin].format(),
        "gone": look.gone.get(origin, Intervals()).format(),
    }


def _shown(look: Look) -> list[tuple[str, str]]:
    store, incarnation = (text.decode() or "none yet" for text in look.own)
    entries = "1 entry" if look.entries == 1 else f"{look.entries:,} entries"
    return [
        ("store", store),
        ("incarnation", f"{incarnation} ({count(look.number('incarnations'), 'incarnation')} so far)"),
        ("messages", f"{look.messages:,} in {entries}, {count(look.number('bytes'), 'byte')} of memory"),
        ("oldest", "-" if look.oldest_age_ms is None else f"{age(look.oldest_age_ms)} ago"),
        ("kept", f"{format_duration(look.number('retention'))}, at most {count(look.bound, 'byte')}"),
        ("ack level", look.figures["level"]),
        ("sent here", f"{look.number('sent'):,}"),
        ("taken from neighbours", f"{look.number('accepted'):,}"),
        ("trimmed", f"{look.number('trimmed_messages'):,}"),
        ("gaps", f"{look.number('gaps'):,}"),
    ]


def _origin_row(look: Look, origin: Origin) -> list[str]:
    store, incarnation = origin
    held, gone = look.held[origin], look.gone.get(origin, Intervals())
    name = f"{store.decode()} (here)" if store == look.own[0] else store.decode()
    return [name, incarnation.decode(), f"{held.total():,}", f"{gone.total():,}", _spans(held)]


def _spans(numbers: Intervals) -> str:
    more = len(numbers.spans) - SHOWN_SPANS
    shown = " ".join(f"{first}-{last}" for first, last in numbers.spans[:SHOWN_SPANS])
    return shown + (f" and {more:,} more" if more > 0 else "")

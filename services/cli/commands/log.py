"""Implement `penstock log show`."""

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

SHOWN_SPANS = 3  # in one table cell
COUNTERS = {  # name here -> field of the log's hash (lua/schema.lua)
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
    """Inspect the log of the text pub/sub service."""


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """The state of the log, read in several requests: an entry that arrives meanwhile may be in some of them only."""

    figures: dict[str, str]  # of the log's hash
    entries: int
    oldest_ms: int  # when the oldest entry was stored; 0: the log is empty
    bound: int  # bytes of memory
    held: Held
    gone: Held
    neighbours: list[Neighbour]
    queues: list[Queue]
    now_ms: int

    @property
    def own(self) -> Origin:
        """Return the origin of messages that enter at this store."""
        return self.figures.get("store", "").encode(), self.figures.get("inc", "").encode()

    @property
    def head(self) -> Place:
        """Return the place of the newest message."""
        return Place(self.number("era"), self.number("serial"))

    @property
    def messages(self) -> int:
        """Return the number of messages in the log."""
        return self.head.serial - parse_place(self.figures.get("trimmed", "0-0")).serial

    @property
    def oldest_age_ms(self) -> int | None:
        """Return the age of the oldest entry, or None if the log is empty."""
        return self.now_ms - self.oldest_ms if self.oldest_ms else None

    def number(self, name: str) -> int:
        """Return a field of the log's hash as a number."""
        return int(self.figures.get(name, 0))


@log.command()
@store_command
async def show(store: Store, output: Output) -> None:
    """Show the log's contents by origin, its neighbours, and its queues.

    Read-only. Ends with 4 if no text pub/sub server has used this store yet.
    """
    snapshot = await _read_snapshot(store)
    if output.as_json:
        output.record(_described(snapshot))
        return
    output.pairs(_shown(snapshot))
    origins = [_origin_row(snapshot, origin) for origin in snapshot.held]
    _table(output, ("origin", "incarnation", "held#", "gone#", "numbers held"), origins)
    links = [[one.store.decode(), one.seen or "-", one.follower or "-"] for one in snapshot.neighbours]
    _table(output, ("neighbour", "log seen up to", "followed by"), links)
    queues = [
        [one.name, " ".join(_binding(one).subscribe), _binding(one).publish or "-"] for one in snapshot.queues
    ]
    _table(output, ("queue", "subscribes to", "publishes as"), queues)


def _table(output: Output, columns: tuple[str, ...], rows: list[list[str]]) -> None:
    if rows:
        output.line("")
        output.table(columns, rows)


# Reading ----------------------------------------------------------------------------------------------------------


async def _read_snapshot(store: Store) -> LogSnapshot:
    """Read the snapshot. Raises Failure if there is no log."""
    source = Log(store.get_domain(LOG_DOMAIN), LogSpec())  # its limits are read from the store, not set
    figures = await source.figures()
    if "level" not in figures:
        await store.registry.epoch()  # raises if the store is not set up
        raise Failure(
            Exit.NOT_FOUND,
            "no_log",
            "no text pub/sub server has used this store yet: start one with `penstock serve pubsub`",
        )
    replica = Replica(source)
    entries, oldest_ms = await source.size()
    held, gone = await replica.numbers()
    own = (figures.get("store", "").encode(), figures.get("inc", "").encode())
    given = int(figures.get("next", 1))
    if given > 1:
        held = {own: Intervals.of([(1, given - 1)]), **held}
    return LogSnapshot(
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


def _bound(limit: int, of_server: int) -> int:
    return min(limit, of_server) if of_server else limit


def _binding(queue: Queue) -> TextBinding:
    return queue.spec.bindings.text


def _is_bound(queue: Queue) -> bool:
    return _binding(queue) != TextBinding()


# Showing -----------------------------------------------------------------------------------------------------------


def _described(snapshot: LogSnapshot) -> dict[str, Any]:
    """Return the snapshot as JSON fields."""
    store, incarnation = snapshot.own
    return {
        "store": store.decode(),
        "incarnation": incarnation.decode(),
        "head": str(snapshot.head),
        "messages": snapshot.messages,
        "entries": snapshot.entries,
        "bytes": snapshot.number("bytes"),
        "oldest_age_ms": snapshot.oldest_age_ms,
        "ack_level": snapshot.figures["level"],
        "retention_ms": snapshot.number("retention"),
        "max_bytes": snapshot.number("max_bytes"),
        "bound_bytes": snapshot.bound,
        **{name: snapshot.number(field) for name, field in COUNTERS.items()},
        "origins": [_origin(snapshot, origin) for origin in snapshot.held],
        "neighbours": [
            {"store": one.store.decode(), "seen": one.seen, "follower": one.follower}
            for one in snapshot.neighbours
        ],
        "queues": [
            {"name": one.name, "subscribe": list(_binding(one).subscribe), "publish": _binding(one).publish}
            for one in snapshot.queues
        ],
    }


def _origin(snapshot: LogSnapshot, origin: Origin) -> dict[str, Any]:
    store, incarnation = origin
    return {
        "store": store.decode(),
        "incarnation": incarnation.decode(),
        "own": store == snapshot.own[0],
        "held": snapshot.held[origin].format(),
        "gone": snapshot.gone.get(origin, Intervals()).format(),
    }


def _shown(snapshot: LogSnapshot) -> list[tuple[str, str]]:
    store, incarnation = (text.decode() or "none yet" for text in snapshot.own)
    entries = "1 entry" if snapshot.entries == 1 else f"{snapshot.entries:,} entries"
    return [
        ("store", store),
        ("incarnation", f"{incarnation} ({count(snapshot.number('incarnations'), 'incarnation')} so far)"),
        (
            "messages",
            f"{snapshot.messages:,} in {entries}, {count(snapshot.number('bytes'), 'byte')} of memory",
        ),
        ("oldest", "-" if snapshot.oldest_age_ms is None else f"{age(snapshot.oldest_age_ms)} ago"),
        ("kept", f"{format_duration(snapshot.number('retention'))}, at most {count(snapshot.bound, 'byte')}"),
        ("ack level", snapshot.figures["level"]),
        ("sent here", f"{snapshot.number('sent'):,}"),
        ("taken from neighbours", f"{snapshot.number('accepted'):,}"),
        ("trimmed", f"{snapshot.number('trimmed_messages'):,}"),
        ("gaps", f"{snapshot.number('gaps'):,}"),
    ]


def _origin_row(snapshot: LogSnapshot, origin: Origin) -> list[str]:
    store, incarnation = origin
    held, gone = snapshot.held[origin], snapshot.gone.get(origin, Intervals())
    name = f"{store.decode()} (here)" if store == snapshot.own[0] else store.decode()
    return [name, incarnation.decode(), f"{held.total():,}", f"{gone.total():,}", _spans(held)]


def _spans(numbers: Intervals) -> str:
    more = len(numbers.spans) - SHOWN_SPANS
    shown = " ".join(f"{first}-{last}" for first, last in numbers.spans[:SHOWN_SPANS])
    return shown + (f" and {more:,} more" if more > 0 else "")

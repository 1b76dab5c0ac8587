"""Streams of a store read from their beginning to an end that was fixed before, by somebody who has no loop of his own.

Nothing is written, acknowledged or trimmed, and no consumer group is used: whoever reads again reads the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from redis.exceptions import ResponseError

from services.store.catalogue.registry import READY
from services.store.model.errors import NotInitialised
from services.store.model.keys import QUEUE_KEYS, DomainKeys, RegistryKeys
from services.store.model.names import decode_name
from services.store.redis.blocking_connection import NO_BOUND, BlockingConnection, Broken, Command
from services.store.redis.link import explain

PAGE_OCTETS = (
    1 << 20
)  # what a page should have at most, as nobody else is served meanwhile; one entry may have more
REPLY_MOST = 64 << 20  # a page of more is given up, and asked for again with fewer entries
FIRST_ROWS = 128  # of a first page, of which nothing is known yet
GROWTH = 8  # a page has at most so many times the entries of the one before
COUNTED = 1000  # entries asked for at a time where only their number is wanted
SAMPLED = 16  # of a page every so many are measured
BEGINNING = "0-0"
LAST_NUMBER = (1 << 64) - 1
DEAD = QUEUE_KEYS.index("d")

Entry = list[Any]  # [id, [name, value, name, value, ...]], octets


@dataclass(frozen=True, slots=True)
class StreamState:
    """What a server tells of a stream. An id is '<ms>-<number>'."""

    length: int
    first: str  # id of the oldest entry that is there; '' if none is
    last: str  # the highest id that was ever given out
    added: int  # entries since it was made

    @property
    def head(self) -> tuple[int, int]:
        """What is before this is not there any more; as ids sort."""
        return parse_id(self.first) if self.first else next_id(parse_id(self.last))


@dataclass(frozen=True, slots=True)
class Page:
    """Entries that follow each other, and how the stream stood right behind that."""

    entries: list[Entry]
    behind: str  # what was asked for begins behind this id
    state: StreamState | None = None  # None: there was no stream, or nobody asked
    octets: int = 0  # that came for it; some that came with the page before are that one's


@dataclass(frozen=True, slots=True)
class DeadStream:
    """Where a queue keeps its dead letters."""

    domain: str
    queue: str
    qid: str
    key: str


def parse_id(text: str) -> tuple[int, int]:
    """As it sorts."""
    first, _, second = text.partition("-")
    return int(first), int(second)


def next_id(identifier: tuple[int, int]) -> tuple[int, int]:
    """No other id is between them."""
    ms, number = identifier
    return (ms, number + 1) if number < LAST_NUMBER else (ms + 1, 0)


class Reading:
    """Questions about streams, and their entries; used as a context manager.

    reply_timeout_s: of each question; patience_s: how long a store that cannot be reached is tried again. Raises
    StoreUnavailable after that, from every method, and at once where the login or a right is wrong; NotInitialised for
    a store that nobody has set up.
    """

    def __init__(self, url: str, *, reply_timeout_s: float = 30.0, patience_s: float = 30.0) -> None:
        """Raises ValueError for a URL that is none."""
        self._line = BlockingConnection(url, reply_timeout_s, patience_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._line.close()

    # what there is

    def now_ms(self) -> int:
        """The store's clock, ms since 1970."""
        seconds, micros = self._one(RegistryKeys().epoch, "TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def epoch(self) -> str:
        """'<dataset>.<generation>' of the catalogue."""
        keys = RegistryKeys()
        found = self._one(keys.epoch, "GET", keys.epoch)
        if found is None:
            raise NotInitialised
        return str(found.decode())

    def domains(self) -> list[str]:
        """Those that are set up, in order."""
        self.epoch()
        keys = RegistryKeys()
        found = self._one(keys.epoch, "HGETALL", keys.domains)
        return sorted(found[i].decode() for i in range(0, len(found), 2) if found[i + 1] == READY)

    def dead_streams(self) -> tuple[list[DeadStream], list[str]]:
        """One for each queue of the catalogue, by name, whether anything died there or not; and queues that have none.

        Of a queue's document only the place counts: one that is of no use to edges has dead letters all the same. The
        others are those whose documents do not say it.
        """
        self.epoch()
        keys, cursor, documents = RegistryKeys(), b"0", dict[bytes, bytes]()
        while True:
            cursor, some = self._one(keys.epoch, "HSCAN", keys.queues, cursor, "COUNT", 500)
            documents |= zip(some[::2], some[1::2], strict=True)
            if cursor == b"0":
                break
        found = {decode_name(name): _dead_stream(name, document) for name, document in documents.items()}
        streams = [each for each in found.values() if each is not None]
        spoilt = sorted(name for name, each in found.items() if each is None)
        return sorted(streams, key=lambda each: (each.domain, each.queue)), spoilt

    def state(self, key: str) -> StreamState | None:
        """None where there is no such stream. Raises ValueError for a key that is none."""
        try:
            (found,) = self._line.ask(key, ("XINFO", "STREAM", key))
        except ResponseError as error:
            if "no such key" in str(error):
                return None
            if "WRONGTYPE" not in str(error):
                raise explain(error) from error
            raise ValueError(f"{key} is no stream") from error
        return _state(found)

    def first_from(self, key: str, start: str) -> str:
        """The id of the first entry at or behind `start`, '' if none is."""
        return next(iter(self.ids_from(key, start, 1)), "")

    def ids_from(self, key: str, start: str, number: int) -> list[str]:
        """Of the first entries at or behind `start`; their values come, too, so a few at a time."""
        return [entry[0].decode() for entry in self._one(key, "XRANGE", key, start, "+", "COUNT", number)]

    def ids_before(self, key: str, end: str, number: int) -> list[str]:
        """Of the last entries up to `end`, the last one first."""
        return [entry[0].decode() for entry in self._one(key, "XREVRANGE", key, end, "-", "COUNT", number)]

    # entries

    def pages(self, key: str, start: str, end: str, rows: int, *, is_watched: bool = False) -> Iterator[Page]:
        """All entries behind `start` up to `end`, at most `rows` at a time; fewer where they are large.

        While a page is looked at the next one is on its way. A connection that breaks is made anew, at whichever
        server has the key then, and the reading goes on behind the last page. is_watched: pages have a state.
        """
        count = min(rows, FIRST_ROWS)
        while parse_id(start) < parse_id(end):
            asked = self._page_commands(key, start, end, count, is_watched)
            try:
                entries, *states = self._replies(key, asked, NO_BOUND if count == 1 else REPLY_MOST)
            except Broken:
                count = max(1, count // GROWTH)
                continue
            page = Page(entries, start, _state_of(states), self._line.octets)
            is_last = len(entries) < count
            if not is_last:
                start = entries[-1][0].decode()
                count = _next_count(entries, rows)
                self._line.send(*self._page_commands(key, start, end, count, is_watched))
            yield page
            if is_last:
                return

    def nth_behind(self, key: str, start: str, end: str, number: int) -> tuple[int, str]:
        """How many entries there are behind `start` up to `end`, at most `number`, and the id of the last of them."""
        found, last = 0, start
        for page in self.pages(key, start, end, min(number, COUNTED)):
            entries = page.entries[: number - found]
            found += len(entries)
            last = entries[-1][0].decode() if entries else last
            if found == number:
                break
        return found, last

    @staticmethod
    def _page_commands(key: str, start: str, end: str, count: int, is_watched: bool) -> list[Command]:
        behind = f"({start}" if start != BEGINNING else "-"
        entries: Command = ("XRANGE", key, behind, end, "COUNT", count)
        return [entries, ("XINFO", "STREAM", key)] if is_watched else [entries]

    def _replies(self, key: str, commands: list[Command], most: int) -> list[Any]:
        try:
            return self._line.ask(key, *commands, most=most)
        except ResponseError as error:
            raise explain(error) from error

    def _one(self, key: str, *command: Any) -> Any:
        """The reply to one command. Raises StoreError."""
        (reply,) = self._replies(key, [command], NO_BOUND)
        return reply


def _dead_stream(name: bytes, document: bytes) -> DeadStream | None:
    """None: the document is none."""
    try:
        told = json.loads(document)
        domain, qid = str(told["domain"]), str(told["qid"])
    except (ValueError, TypeError, KeyError):
        return None
    return DeadStream(domain, decode_name(name), qid, DomainKeys(domain).queue(qid)[DEAD])


def _state_of(told: list[Any]) -> StreamState | None:
    return _state(told[0]) if told and not isinstance(told[0], Exception) else None


def _state(found: list[Any]) -> StreamState:
    told = {found[i].decode(): found[i + 1] for i in range(0, len(found), 2)}
    first = told["first-entry"]
    return StreamState(
        length=int(told["length"]),
        first=first[0].decode() if first else "",
        last=told["last-generated-id"].decode(),
        added=int(told["entries-added"]),
    )


def _next_count(page: list[Entry], rows: int) -> int:
    """So many as PAGE_OCTETS have room for, by what the last page had, and not many more than that."""
    some = page[::SAMPLED]  # to look at all of them would cost a tenth of reading them
    octets = sum(sum(map(len, fields)) for _, fields in some)
    return max(1, min(rows, GROWTH * len(page), PAGE_OCTETS * len(some) // max(1, octets)))

"""Read streams of a store from the beginning to a fixed end, over a blocking connection.

StreamReader changes nothing: no consumer group is used, and nothing is acknowledged or trimmed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from redis.exceptions import ResponseError

from services.store.catalogue.registry import READY
from services.store.model.dead_letter import parse_id
from services.store.model.errors import NotInitialised
from services.store.model.keys import QUEUE_KEYS, DomainKeys, RegistryKeys
from services.store.model.names import decode_name
from services.store.redis.blocking_connection import NO_BOUND, BlockingConnection, Broken, Command
from services.store.redis.link import explain

# target size of a page, as the server serves no one else meanwhile; one entry may be larger
PAGE_OCTETS = 1 << 20
REPLY_MOST = 64 << 20  # a larger page is abandoned and requested with fewer entries
FIRST_ROWS = 128  # of the first page, before sizes are known
GROWTH = 8  # maximum growth of a page over the previous one, in entries
COUNTED = 1000  # entries requested at a time to count them
SAMPLED = 16  # one entry in this many is measured
BEGINNING = "0-0"
LAST_NUMBER = (1 << 64) - 1
DEAD = QUEUE_KEYS.index("d")

Entry = list[Any]  # [id, [name, value, name, value, ...]], octets


@dataclass(frozen=True, slots=True)
class StreamState:
    """The state of a stream. An id is '<ms>-<number>'."""

    length: int
    first: str  # id of the oldest entry; '' if the stream is empty
    last: str  # the highest id ever assigned
    added: int  # entries since its creation

    @property
    def head(self) -> tuple[int, int]:
        """The parsed id before which entries have been removed."""
        return parse_id(self.first) if self.first else next_id(parse_id(self.last))


@dataclass(frozen=True, slots=True)
class Page:
    """Consecutive entries, and the state of the stream after them."""

    entries: list[Entry]
    behind: str  # the page begins after this id
    state: StreamState | None = None  # None: no stream, or not requested
    octets: int = 0  # received for this page, apart from those that arrived with the previous one


@dataclass(frozen=True, slots=True)
class DeadStream:
    """The stream of a queue's dead letters."""

    domain: str
    queue: str
    qid: str
    key: str


def next_id(identifier: tuple[int, int]) -> tuple[int, int]:
    """Return the id that immediately follows."""
    ms, number = identifier
    return (ms, number + 1) if number < LAST_NUMBER else (ms + 1, 0)


class StreamReader:
    """A reader of streams, used as a context manager.

    reply_timeout_s: of each request; patience_s: how long to retry an unreachable store. Every method raises
    StoreUnavailable after that, and at once for a wrong login or missing right; NotInitialised before setup.
    """

    def __init__(self, url: str, *, reply_timeout_s: float = 30.0, patience_s: float = 30.0) -> None:
        """Raise ValueError for an invalid URL."""
        self._line = BlockingConnection(url, reply_timeout_s, patience_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the store."""
        self._line.close()

    # the catalogue

    def now_ms(self) -> int:
        """Return the store's time, ms since 1970."""
        seconds, micros = self._one(RegistryKeys().epoch, "TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def epoch(self) -> str:
        """Return the catalogue's epoch, '<dataset>.<generation>'."""
        keys = RegistryKeys()
        found = self._one(keys.epoch, "GET", keys.epoch)
        if found is None:
            raise NotInitialised
        return str(found.decode())

    def domains(self) -> list[str]:
        """Return the names of the domains that are set up, sorted."""
        self.epoch()
        keys = RegistryKeys()
        found = self._one(keys.epoch, "HGETALL", keys.domains)
        return sorted(found[i].decode() for i in range(0, len(found), 2) if found[i + 1] == READY)

    def dead_streams(self) -> tuple[list[DeadStream], list[str]]:
        """Return the dead letter streams of all queues by name, and the queues whose documents do not locate them.

        Queues with unreadable specs are included, as only id and domain of the document are needed.
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
        """Return the state of a stream, None if it does not exist. Raises ValueError for a key of another type."""
        try:
            (found,) = self._line.ask(key, ("XINFO", "STREAM", key))
        except ResponseError as error:
            if "no such key" in str(error):
                return None
            if "WRONGTYPE" not in str(error):
                raise explain(error) from error
            raise ValueError(f"{key} is not a stream") from error
        return _state(found)

    def first_from(self, key: str, start: str) -> str:
        """Return the id of the first entry at or after `start`, '' without one."""
        return next(iter(self.ids_from(key, start, 1)), "")

    def ids_from(self, key: str, start: str, number: int) -> list[str]:
        """Return ids of the first entries at or after `start`; the reply has their values, so keep `number` small."""
        return [entry[0].decode() for entry in self._one(key, "XRANGE", key, start, "+", "COUNT", number)]

    def ids_before(self, key: str, end: str, number: int) -> list[str]:
        """Return ids of the last entries up to `end`, newest first."""
        return [entry[0].decode() for entry in self._one(key, "XREVRANGE", key, end, "-", "COUNT", number)]

    # entries

    def pages(self, key: str, start: str, end: str, rows: int, *, is_watched: bool = False) -> Iterator[Page]:
        """Yield pages of at most `rows` entries after `start` up to `end`; large entries make smaller pages.

        The next page is requested before a page is yielded. After a connection error, reading continues after the last
        page, at the server that has the key then. is_watched: pages have a state.
        """
        count = min(rows, FIRST_ROWS)
        while parse_id(start) < parse_id(end):
            commands = self._page_commands(key, start, end, count, is_watched)
            try:
                entries, *states = self._replies(key, commands, NO_BOUND if count == 1 else REPLY_MOST)
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
        """Count entries after `start` up to `end`, at most `number`; return the count and the id of the last one."""
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
        """Return the reply to one command. Raises StoreError."""
        (reply,) = self._replies(key, [command], NO_BOUND)
        return reply


def _dead_stream(name: bytes, document: bytes) -> DeadStream | None:
    """Return the queue's dead letter stream, or None for an unreadable document."""
    try:
        read = json.loads(document)
        domain, qid = str(read["domain"]), str(read["qid"])
    except (ValueError, TypeError, KeyError):
        return None
    return DeadStream(domain, decode_name(name), qid, DomainKeys(domain).queue(qid)[DEAD])


def _state_of(replies: list[Any]) -> StreamState | None:
    return _state(replies[0]) if replies and not isinstance(replies[0], Exception) else None


def _state(found: list[Any]) -> StreamState:
    info = dict(zip(found[::2], found[1::2], strict=True))
    first = info[b"first-entry"]
    return StreamState(
        length=int(info[b"length"]),
        first=first[0].decode() if first else "",
        last=info[b"last-generated-id"].decode(),
        added=int(info[b"entries-added"]),
    )


def _next_count(page: list[Entry], rows: int) -> int:
    """Return the entries that PAGE_OCTETS has room for, estimated from the last page, with limited growth."""
    some = page[::SAMPLED]  # measuring all entries would cost a tenth of reading them
    octets = sum(sum(map(len, fields)) for _, fields in some)
    return max(1, min(rows, GROWTH * len(page), PAGE_OCTETS * len(some) // max(1, octets)))

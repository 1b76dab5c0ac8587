"""Violations of the guarantees that hold with any kills and cuts ("Guarantees" of docs/rqp-mca.md, docs/rqp-cast.md).

foreign    a message arrived or is dead that no producer put, that was refused, or that belongs to another way; except
           that a message to a port whose last owner was killed is `injured` there (rqp_cast.md 5.2)
lost       a certain, stored message never arrived; or, without a fault, an uncertain one neither arrived nor is dead
uncounted  more uncertain messages were lost while only stores were killed than the edges, which kept running, counted
doubled    a message arrived twice: on a way with certain RQP/cast, or without a fault on any other way
order      a later message overtook one without a fault since it was put

"Without a fault" means: no fault of a process or cable of this way from the put of the message to its arrival. A fault
lasts until all edges serve again, and AFTERWARDS_S more, because resources of dead processes are released late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tests.faults.disturbance import Fault
from tests.faults.episodes import Kind
from tests.faults.rqp.history import HEAD, Alone, Arrival, Book, Letter, Put
from tests.faults.run_report import Violation

AFTERWARDS_S = 8.0  # sessions, reservations and pauses from the time of a fault have expired by then
FOR_EVER = float("inf")


def check(books: Iterable[Book], faults: Sequence[Fault], alone: Alone | None = None) -> list[Violation]:
    books = list(books)
    checks = [Check(book, faults, books) for book in books]
    found = [violation for one in checks for violation in one.violations()]
    return found if alone is None else [*found, *_uncounted(checks, alone)]


def _uncounted(checks: Iterable[Check], alone: Alone) -> Iterator[Violation]:
    gone = Counter(one.book.way.protocol for one in checks for _ in one.gone(alone))
    for protocol, number in gone.items():
        if number > (reported := alone.counted[protocol]):
            text = f"{protocol}: {number} messages are gone while edges lived, but {reported} are counted as lost"
            yield Violation("uncounted", text)


@dataclass(frozen=True)
class Check:
    """The check of one way."""

    book: Book
    faults: Sequence[Fault]
    books: Sequence[Book] = ()  # the books of all ways

    @cached_property
    def by_body(self) -> dict[bytes, Put]:
        return {put.body: put for put in self.book.puts}

    @cached_property
    def times(self) -> Counter[bytes]:
        return Counter(arrival.body for arrival in self.book.arrivals)

    @cached_property
    def dead(self) -> set[bytes]:
        """Heads of the bodies of dead letters; a partly received message may have no more than that."""
        return {letter.body[:HEAD] for letter in self.book.letters}

    @cached_property
    def firsts(self) -> list[Arrival]:
        """First arrivals of messages that were put."""
        found: dict[bytes, Arrival] = {}
        for arrival in self.book.arrivals:
            if arrival.body in self.by_body:
                found.setdefault(arrival.body, arrival)
        return list(found.values())

    def violations(self) -> Iterator[Violation]:
        yield from self._foreign()
        yield from self._lost()
        yield from self._doubled()
        yield from self._order()

    def _foreign(self) -> Iterator[Violation]:
        for body in self.times:
            put = self.by_body.get(body)
            if put is None or put.was_refused:
                yield self._say("foreign", f"{body[:HEAD]!r} arrived, though it was never put in")
        for letter in self.book.letters:
            if not any(put.body.startswith(letter.body) for put in self._meant(letter)):
                yield self._say(
                    "foreign", f"{letter.body[:HEAD]!r} is dead ({letter.reason}), but was never put in"
                )

    def _meant(self, letter: Letter) -> Iterable[Put]:
        if letter.reason == "injured" and any(fault.kind == Kind.KILL.value for fault in self.faults):
            others = (book for book in self.books if book.way.protocol == self.book.way.protocol)
            return (put for book in others for put in book.puts)
        return self._like(letter.body)

    def _like(self, body: bytes) -> list[Put]:
        if len(body) < HEAD:  # truncated within its head
            return self.book.puts
        return self._by_head.get(body[:HEAD], [])

    @cached_property
    def _by_head(self) -> dict[bytes, list[Put]]:
        return {put.body[:HEAD]: [put] for put in self.book.puts if not put.was_refused}

    def _lost(self) -> Iterator[Violation]:
        for put in self.book.puts:
            if not put.is_stored or self.times[put.body]:
                continue
            if self.book.way.is_certain:
                yield self._say("lost", f"{put} was stored and never arrived")
            elif put.body[:HEAD] not in self.dead and not self.something_happened(
                put.began, self._passed(put)
            ):
                yield self._say("lost", f"{put} neither arrived nor is dead, and nothing had happened")

    def gone(self, alone: Alone) -> list[Put]:
        """Return uncertain messages put in the period of `alone` that neither arrived nor are dead."""
        if self.book.way.is_certain:
            return []
        puts = [put for put in self.book.puts if put.is_stored and alone.began <= put.began <= alone.ended]
        return [put for put in puts if not self.times[put.body] and put.body[:HEAD] not in self.dead]

    def _passed(self, put: Put) -> float:
        """Return when a later message first arrived; this one had been sent by then."""
        later = (each.at for each in self.firsts if self._number(each.body) > self._number(put.body))
        return min(later, default=FOR_EVER)

    def _doubled(self) -> Iterator[Violation]:
        for body, count in self.times.items():
            if count == 1 or body not in self.by_body:
                continue
            put = self.by_body[body]
            last = max(arrival.at for arrival in self.book.arrivals if arrival.body == body)
            if self.book.way.is_once:
                yield self._say("doubled", f"{put} arrived {count} times")
            elif not self.something_happened(put.began, last):
                yield self._say("doubled", f"{put} arrived {count} times, and nothing had happened")

    def _order(self) -> Iterator[Violation]:
        """Check the order of messages known to be stored; other puts may have taken effect late."""
        highest: Arrival | None = None
        for arrival in self.firsts:
            put = self.by_body[arrival.body]
            if not put.is_stored:
                continue
            if highest is None or self._number(highest.body) < self._number(arrival.body):
                highest = arrival
            elif not self.something_happened(put.began, arrival.at):
                text = f"{put} came after {self.by_body[highest.body]}, and nothing had happened since it was put"
                yield self._say("order", text)

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {put.body: number for number, put in enumerate(self.book.puts)}

    def _number(self, body: bytes) -> int:
        return self._numbers[body]

    def something_happened(self, first: float, last: float) -> bool:
        """Return whether a fault affected this way between these times."""
        return any(
            fault.began <= last and first <= _end(fault) + AFTERWARDS_S
            for fault in self.faults
            if self.book.way.is_on(fault.target)
        )

    def _say(self, rule: str, text: str) -> Violation:
        return Violation(rule, f"{self.book.way}: {text}")


def _end(fault: Fault) -> float:
    return FOR_EVER if fault.resumed is None else fault.resumed


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of messages on ways of one kind, for the summary."""

    put: int  # known to be stored
    unknown: int  # without an answer
    arrived: int  # distinct messages
    again: int  # arrivals beyond the first of each message
    dead: int
    gone: int  # uncertain messages that were sent and lost


def count(books: Sequence[Book]) -> Counts:
    puts = [put for book in books for put in book.puts]
    arrived = {arrival.body for book in books for arrival in book.arrivals}
    dead = {letter.body[:HEAD] for book in books for letter in book.letters}
    gone = [put for put in puts if put.is_stored and not {put.body, put.body[:HEAD]} & (arrived | dead)]
    return Counts(
        sum(put.is_stored for put in puts),
        sum(put.ended is None for put in puts),
        len(arrived),
        sum(len(book.arrivals) for book in books) - len(arrived),
        len(dead),
        len(gone),
    )

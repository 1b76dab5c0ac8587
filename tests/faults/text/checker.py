"""Violations of the guarantees that hold with any kills and cuts (pubsub.md 3, 4).

foreign    a log or a subscriber has a message that was not sent, that was refused, or that does not match
doubled    a log or a subscription has a message twice
lost       a message answered OK is missing from a log, or from a subscription active at the time
order      a store's log contradicts the order in which its clients sent; another store has those entries in another
           order; or a subscriber got them in another order than its store's log
early      a subscription got a message that was answered before the SUBSCRIBE was sent
differ     the stores hold different sets of (origin, incarnation, number), or different messages under one of them
gaps       a store counted numbers that no neighbour had any more, although nothing was trimmed
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from tests.faults.run_report import Violation
from tests.faults.text.history import Book, Entry, Life, Sent, Subscription

# how long a new subscription may lag behind the others of its connection, as cables stand still
CATCHING_UP_S = 10.0


def check(sent: Sequence[Sent], books: Sequence[Book], lives: Iterable[Life]) -> list[Violation]:
    """Check a run; `books` has one book per store, indexed by `Sent.store` and `Life.store`."""
    by_text = {send.text: send for send in sent}
    found = [*check_same(books)]
    for number, book in enumerate(books):
        found += check_book(number, book, by_text)
        found += check_sending_order(number, book, by_text)
        for other in books:
            found += check_order_of(book, other)
    for life in lives:
        found += LifeCheck(life, books[life.store], by_text).check()
    return found


# logs


def check_same(books: Sequence[Book]) -> Iterator[Violation]:
    """Check that all logs hold the same numbers with the same messages."""
    first = books[0]
    by_name = {(entry.origin, entry.number): (entry.tag, entry.text) for entry in first.entries}
    for number, book in enumerate(books):
        if book.gaps:
            yield Violation("gaps", f"store {number} counted {book.gaps} messages that no neighbour had")
        if book.held != first.held:
            text = (
                f"{_some(first.held - book.held)} are held by store 0 only, {_some(book.held - first.held)}"
            )
            yield Violation("differ", f"{text} by store {number} only")
        have = {(entry.origin, entry.number) for entry in book.entries}
        if have != book.held:
            yield Violation(
                "differ", f"store {number} says it holds {_some(have ^ book.held)}, or has and says not"
            )
        for entry in book.entries:
            if by_name.get((entry.origin, entry.number), (entry.tag, entry.text)) != (entry.tag, entry.text):
                yield Violation("differ", f"{entry} of store {number} is another message in store 0")


def check_book(number: int, book: Book, sent: dict[bytes, Sent]) -> Iterator[Violation]:
    """Check that a log holds only sent messages, each once, and all that were answered OK."""
    here = Counter(entry.text for entry in book.entries)
    numbers = Counter((entry.origin, entry.number) for entry in book.entries)
    for what in [*(text for text in here if here[text] > 1), *(n for n in numbers if numbers[n] > 1)]:
        yield Violation("doubled", f"{what!r} is in the log of store {number} more than once")
    for entry in book.entries:
        send = sent.get(entry.text)
        if send is None or send.tag != entry.tag:
            yield Violation("foreign", f"{entry} was never sent, but is in the log of store {number}")
        elif send.was_refused:
            yield Violation("foreign", f"{send} was refused, and is in the log of store {number}")
    for send in sent.values():
        if send.is_certain and send.text not in here:
            yield Violation("lost", f"{send} is not in the log of store {number}")


def check_sending_order(number: int, book: Book, sent: dict[bytes, Sent]) -> Iterator[Violation]:
    """Check that a log keeps each connection's order, and has a SEND behind those answered before it (3.4)."""
    here = [send for entry in book.entries if (send := sent.get(entry.text)) and send.store == number]
    place = {send.text: index for index, send in enumerate(here)}
    latest: dict[int, Sent] = {}
    for send in sent.values():  # in the order of sending
        if send.text in place:
            last = latest.get(send.connection)
            if last is not None and place[last.text] > place[send.text]:
                yield Violation("order", f"{send} stands before {last}, by the same sender")
            latest[send.connection] = send
    first: Sent | None = None  # of the messages behind, the one answered first
    for send in reversed(here):
        if first is not None and first.answered is not None and first.answered < send.began:
            yield Violation("order", f"{send} stands before {first}, which was answered before")
        if send.answered is not None and (
            first is None or first.answered is None or send.answered < first.answered
        ):
            first = send


def check_order_of(book: Book, other: Book) -> Iterator[Violation]:
    """Check that another log keeps the order of messages from this book's store (4.5)."""
    place = {entry.text: index for index, entry in enumerate(book.entries) if entry.store == book.store}
    there = [entry for entry in other.entries if entry.store == book.store and entry.text in place]
    for one, two in pairwise(there):
        if place[one.text] > place[two.text]:
            yield Violation("order", f"{one} and {two} are in another order at their origin")


# subscribers


class LifeCheck:
    """The check of one connection of a subscriber against the log of its store."""

    def __init__(self, life: Life, book: Book, sent: dict[bytes, Sent]) -> None:
        self._life = life
        self._entries = book.entries
        self._sent = sent
        self._place = {entry.text: index for index, entry in enumerate(book.entries)}
        self._who = f"{life.subscriber} at {life.edge} of store {life.store}"

    def check(self) -> Iterator[Violation]:
        life = self._life
        for line in life.odd:
            yield Violation("foreign", f"{self._who} received {line!r}")
        by_identifier: dict[bytes, list[bytes]] = {s.identifier: [] for s in life.subscriptions}
        for identifier, text in life.lines:
            if identifier in by_identifier and text in self._place:
                by_identifier[identifier].append(text)
            else:
                yield Violation(
                    "foreign", f"{self._who} got {text!r}, which is not in the log, as {identifier!r}"
                )
        for subscription in life.subscriptions:
            yield from self._check_one(subscription, by_identifier[subscription.identifier])
        yield from self._check_together()

    def _check_one(self, subscription: Subscription, texts: list[bytes]) -> Iterator[Violation]:
        """Check that a subscription got each matching message of a long enough range of the log, once and in order."""
        matching = [i for i, entry in enumerate(self._entries) if subscription.matches(entry.tag)]
        rank = {place: index for index, place in enumerate(matching)}
        got = [self._place[text] for text in texts]
        ranks = [rank[place] for place in got if place in rank]
        for place in got:
            if place not in rank:
                yield self._violation("foreign", subscription, self._entries[place])
        yield from self._check_stretch(subscription, matching, ranks)
        start = ranks[0] if ranks else len(matching)
        yield from self._check_start(
            subscription, [self._entries[place] for place in matching], start, bool(ranks)
        )
        if self._life.ended is None and ranks:
            for index in range(max(ranks) + 1, len(matching)):
                yield self._violation("lost", subscription, self._entries[matching[index]])

    def _check_stretch(
        self, subscription: Subscription, matching: list[int], ranks: list[int]
    ) -> Iterator[Violation]:
        seen: set[int] = set()
        for index, rank in enumerate(ranks):
            if rank in seen:
                yield self._violation("doubled", subscription, self._entries[matching[rank]])
            elif index and rank < ranks[index - 1]:
                yield self._violation("order", subscription, self._entries[matching[rank]])
            seen.add(rank)
        for rank in set(range(min(ranks, default=0), max(ranks, default=-1) + 1)) - seen:
            yield self._violation("lost", subscription, self._entries[matching[rank]])

    def _check_start(
        self, subscription: Subscription, matching: list[Entry], start: int, is_any: bool
    ) -> Iterator[Violation]:
        """Check that a subscription got all messages sent after its OK, and none of its store answered before (3.2)."""
        if subscription.confirmed is not None and (is_any or self._life.ended is None):
            for entry in matching[:start]:
                send = self._sent.get(entry.text)
                if send is not None and send.began > subscription.confirmed:
                    yield self._violation("lost", subscription, entry)
        for entry in matching[start:]:
            send = self._sent.get(entry.text)
            if send is not None and self._was_before(send, subscription):
                yield self._violation("early", subscription, entry)

    def _was_before(self, send: Sent, subscription: Subscription) -> bool:
        """Return whether a message of this store was answered before the SUBSCRIBE.

        The arrival times of messages from other stores are unknown.
        """
        is_here = send.is_certain and send.store == self._life.store
        return is_here and send.answered is not None and send.answered < subscription.asked

    def _check_together(self) -> Iterator[Violation]:
        """Check the order over all subscriptions: by the log, and for one message by subscription (3.3, 3.4).

        Messages soon after a new subscription are exempt: until it has caught up, the others may be ahead.
        """
        number = {s.identifier: index for index, s in enumerate(self._life.subscriptions)}
        steps = [
            (self._place[text], number[identifier])
            for identifier, text in self._life.lines
            if text in self._place and identifier in number
        ]
        for one, two in pairwise(steps):
            if two < one and self._was_confirmed(two):
                text = f"{self._who} got {self._entries[two[0]]} after {self._entries[one[0]]}"
                yield Violation("order", text)

    def _was_confirmed(self, step: tuple[int, int]) -> bool:
        """Return whether the subscription was confirmed long before the message was sent."""
        place, number = step
        send = self._sent.get(self._entries[place].text)
        confirmed = self._life.subscriptions[number].confirmed
        return send is not None and confirmed is not None and confirmed + CATCHING_UP_S < send.began

    def _violation(self, rule: str, subscription: Subscription, entry: Entry) -> Violation:
        return Violation(rule, f"{self._who}, pattern {subscription.pattern.decode()}: {entry}")


def _some(numbers: set[tuple[bytes, int]]) -> str:
    return f"{len(numbers)} numbers ({', '.join(f'{o.decode()} {n}' for o, n in sorted(numbers)[:3])})"

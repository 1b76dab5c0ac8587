"""What must hold after a run, whatever was killed or cut when (pubsub.md 3, 4).

foreign    in a log, or given to a subscriber: what nobody sent, what was refused, or what does not match
doubled    twice in a log, or twice for one subscription
lost       answered OK and not in every log; or missed by a subscription that was there for it
order      a store's log contradicts the order in which its clients sent; another store has those entries in another
           order; or a subscriber saw them otherwise than they stand in his store's log
early      a subscription got what had been answered before it was asked for
differ     the stores do not hold the same (origin, incarnation, number), or not the same message under it
gaps       a store counted numbers that nobody had any more: nothing was trimmed
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from tests.faults.telling import Violation
from tests.faults.text.history import Book, Entry, Life, Sent, Subscription

CATCHING_UP_S = (
    10.0  # a new subscription may be behind the others of its connection for so long: cables stand still
)


def check(sent: Sequence[Sent], books: Sequence[Book], lives: Iterable[Life]) -> list[Violation]:
    """books: one for each store, in the order of `Sent.store` and `Life.store`."""
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
    """All logs hold the same numbers, and the same under each of them."""
    first = books[0]
    told = {(entry.origin, entry.number): (entry.tag, entry.text) for entry in first.entries}
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
            if told.get((entry.origin, entry.number), (entry.tag, entry.text)) != (entry.tag, entry.text):
                yield Violation("differ", f"{entry} of store {number} is another message in store 0")


def check_book(number: int, book: Book, sent: dict[bytes, Sent]) -> Iterator[Violation]:
    """What was sent, once each; all that was answered."""
    here = Counter(entry.text for entry in book.entries)
    numbers = Counter((entry.origin, entry.number) for entry in book.entries)
    for what in [*(text for text in here if here[text] > 1), *(n for n in numbers if numbers[n] > 1)]:
        yield Violation("doubled", f"{what!r} is in the log of store {number} more than once")
    for entry in book.entries:
        send = sent.get(entry.text)
        if send is None or send.tag != entry.tag:
            yield Violation("foreign", f"nobody sent {entry}, which is in the log of store {number}")
        elif send.was_refused:
            yield Violation("foreign", f"{send} was refused, and is in the log of store {number}")
    for send in sent.values():
        if send.is_certain and send.text not in here:
            yield Violation("lost", f"{send} is not in the log of store {number}")


def check_sending_order(number: int, book: Book, sent: dict[bytes, Sent]) -> Iterator[Violation]:
    """3.4: what one connection sent keeps its order; what was answered before another began stands before it."""
    here = [send for entry in book.entries if (send := sent.get(entry.text)) and send.store == number]
    place = {send.text: index for index, send in enumerate(here)}
    latest: dict[int, Sent] = {}
    for send in sent.values():  # in the order of sending
        if send.text in place:
            last = latest.get(send.connection)
            if last is not None and place[last.text] > place[send.text]:
                yield Violation("order", f"{send} stands before {last}, by the same sender")
            latest[send.connection] = send
    first: Sent | None = None  # of those that stand behind, the one that was answered first
    for send in reversed(here):
        if first is not None and first.answered is not None and first.answered < send.began:
            yield Violation("order", f"{send} stands before {first}, which was answered before")
        if send.answered is not None and (
            first is None or first.answered is None or send.answered < first.answered
        ):
            first = send


def check_order_of(book: Book, other: Book) -> Iterator[Violation]:
    """4.5: what arose at one store stands in its order in the other's log too."""
    place = {entry.text: index for index, entry in enumerate(book.entries) if entry.store == book.store}
    there = [entry for entry in other.entries if entry.store == book.store and entry.text in place]
    for one, two in pairwise(there):
        if place[one.text] > place[two.text]:
            yield Violation("order", f"{one} and {two} stand in another order where they arose")


# subscribers


class LifeCheck:
    """One connection of a subscriber, against the log of his store."""

    def __init__(self, life: Life, book: Book, sent: dict[bytes, Sent]) -> None:
        self._life = life
        self._entries = book.entries
        self._sent = sent
        self._place = {entry.text: index for index, entry in enumerate(book.entries)}
        self._who = f"{life.subscriber} at {life.edge} of store {life.store}"

    def check(self) -> Iterator[Violation]:
        life = self._life
        for line in life.odd:
            yield Violation("foreign", f"{self._who} was told {line!r}")
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
        """Each matching message of a stretch of the log once and in order, and the stretch is long enough."""
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
        """3.2: everything that began after the OK; nothing of his store that was answered before he asked."""
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
        """Of another store nobody knows when it arrived here."""
        is_here = send.is_certain and send.store == self._life.store
        return is_here and send.answered is not None and send.answered < subscription.asked

    def _check_together(self) -> Iterator[Violation]:
        """3.3, 3.4: over all subscriptions the order is the log's; of one message, that of the subscriptions.

        But for what comes soon after a subscription was made: until it has caught up, the others may be further.
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
        """Long before the message was sent."""
        place, number = step
        send = self._sent.get(self._entries[place].text)
        confirmed = self._life.subscriptions[number].confirmed
        return send is not None and confirmed is not None and confirmed + CATCHING_UP_S < send.began

    def _violation(self, rule: str, subscription: Subscription, entry: Entry) -> Violation:
        return Violation(rule, f"{self._who}, pattern {subscription.pattern.decode()}: {entry}")


def _some(numbers: set[tuple[bytes, int]]) -> str:
    return f"{len(numbers)} numbers ({', '.join(f'{o.decode()} {n}' for o, n in sorted(numbers)[:3])})"

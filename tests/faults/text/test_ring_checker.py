"""The checker of the ring finds each violation: every rule has a small history that breaks only it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest

from tests.faults.text.checker import CATCHING_UP_S, check
from tests.faults.text.history import Book, Entry, Life, Sent, Subscription

TAGS = (b"a", b"ab", b"b")
COUNT = 12  # messages, from stores 0, 1 and 2 in turn
EVERY_S = 3 * CATCHING_UP_S
SUBSCRIBED = 5.5 * EVERY_S  # between two messages


class Case:
    """A run without faults: twelve messages in three equal logs; per store one subscriber with two subscriptions."""

    def __init__(self) -> None:
        self.sent = [
            Sent(b"m%d" % i, TAGS[i % 2], i % 3, i % 3, i * EVERY_S, i * EVERY_S + 0.2, ok=True)
            for i in range(COUNT)
        ]
        entries = [Entry(b"s%d inc" % (i % 3), i // 3 + 1, TAGS[i % 2], b"m%d" % i) for i in range(COUNT)]
        numbers = {(entry.origin, entry.number) for entry in entries}
        self.books = [Book(b"s%d" % store, list(entries), set(numbers)) for store in range(3)]
        self.lives = [self._life(store) for store in range(3)]

    def _life(self, store: int) -> Life:
        life = Life("s", store, "edge")
        for identifier, pattern in ((b"1", b"ab"), (b"2", b"a*")):
            life.subscriptions.append(Subscription(identifier, pattern, SUBSCRIBED - 0.1, SUBSCRIBED))
        for send in self.sent[6:]:
            life.lines += [(s.identifier, send.text) for s in life.subscriptions if s.matches(send.tag)]
        return life

    def rules(self) -> set[str]:
        return {violation.rule for violation in check(self.sent, self.books, self.lives)}

    def drop(self, book: int, text: bytes) -> None:
        """Remove an entry from a log, and from the numbers that its store reports."""
        there = self.books[book]
        entry = next(entry for entry in there.entries if entry.text == text)
        there.entries.remove(entry)
        there.held.remove((entry.origin, entry.number))

    def put(self, book: int, entry: Entry) -> None:
        self.books[book].entries.append(entry)
        self.books[book].held.add((entry.origin, entry.number))

    def swap(self, book: int, one: int, two: int) -> None:
        entries = self.books[book].entries
        entries[one], entries[two] = entries[two], entries[one]


def test_a_good_run_is_well() -> None:
    assert Case().rules() == set()


def test_text_of_an_unanswered_send_may_be_logged_or_not() -> None:
    """Check that the text of an unanswered SEND may be in the logs or not (3.1)."""
    case = Case()
    case.sent[4].answered = None
    assert case.rules() == set()
    for book in range(3):
        case.drop(book, b"m4")
    assert case.rules() == set()


def test_a_broken_life_is_judged_up_to_its_end() -> None:
    case = Case()
    case.lives[0].ended = 9 * EVERY_S
    del case.lives[0].lines[-3:]
    assert case.rules() == set()
    case.lives[0].lines.clear()
    assert case.rules() == set()


def test_the_moment_of_subscription_may_be_earlier_than_its_ok() -> None:
    """Check that a subscriber may get texts from before its OK (3.2).

    The arrival of a text from another store is unknown; one from its own store must be unanswered before the request.
    """
    case = Case()
    case.lives[0].lines[:0] = [(b"1", b"m5"), (b"2", b"m5")]
    case.sent[5].answered = SUBSCRIBED
    assert case.rules() == set()


def test_late_ones_of_a_young_subscription_may_come_behind_others() -> None:
    """Check that texts from soon after the OK of one subscription may be delivered out of order (3.4)."""
    case = Case()
    first, second, *rest = case.lives[1].lines
    case.lives[1].lines = [second, first, *rest]
    assert case.rules() == {"order"}
    case.sent[6].began = case.sent[7].began = SUBSCRIBED + 0.9 * CATCHING_UP_S
    assert "order" not in {v.rule for v in check(case.sent, case.books, case.lives) if "got" in v.text}


def lost_everywhere(case: Case) -> None:
    for book in range(3):
        case.drop(book, b"m7")
    for life in case.lives:
        life.lines = [line for line in life.lines if line[1] != b"m7"]


def lost_in_the_middle_of_a_life(case: Case) -> None:
    del case.lives[1].lines[2]


def lost_at_the_end_of_a_life(case: Case) -> None:
    del case.lives[2].lines[-1]


def lost_at_the_beginning_of_a_life(case: Case) -> None:
    case.lives[0].lines = case.lives[0].lines[4:]


def lost_all_of_a_life(case: Case) -> None:
    case.lives[0].lines.clear()


def doubled_in_a_log(case: Case) -> None:
    for book in range(3):
        case.put(book, Entry(b"s1 inc", 99, b"ab", b"m7"))
    for life in case.lives:
        life.ended = 12.0


def doubled_number(case: Case) -> None:
    case.books[1].entries.append(case.books[1].entries[3])


def doubled_to_a_subscriber(case: Case) -> None:
    case.lives[0].lines.append(case.lives[0].lines[-1])


def doubled_at_once(case: Case) -> None:
    case.lives[0].lines.insert(2, case.lives[0].lines[1])


def reordered_to_a_subscriber(case: Case) -> None:
    lines = case.lives[0].lines
    case.lives[0].lines = [*lines[3:6], *lines[:3], *lines[6:]]


def reordered_between_subscriptions(case: Case) -> None:
    """Swap m6, for subscription 2 only, with m7, for both."""
    lines = case.lives[0].lines
    lines[1], lines[2] = lines[2], lines[1]


def reordered_where_it_arose(case: Case) -> None:
    """Swap two texts, the first answered before the second was sent."""
    for book in range(3):
        case.swap(book, 1, 4)


def reordered_by_a_connection(case: Case) -> None:
    """Swap two unanswered texts of one connection."""
    case.sent[0].answered = case.sent[3].answered = None
    for book in range(3):
        case.swap(book, 0, 3)


def reordered_at_another_store(case: Case) -> None:
    case.swap(2, 0, 3)


def foreign_in_a_log(case: Case) -> None:
    for book in range(3):
        case.put(book, Entry(b"s0 inc", 5, b"x", b"unknown"))


def refused_but_there(case: Case) -> None:
    case.sent[2].ok = False


def under_another_tag(case: Case) -> None:
    case.sent[2].tag = b"b"


def foreign_to_a_subscriber(case: Case) -> None:
    case.lives[0].lines.append((b"1", b"unknown"))


def unasked_to_a_subscriber(case: Case) -> None:
    """Deliver a text with a tag that the pattern does not match."""
    case.lives[0].lines.append((b"1", b"m10"))


def odd_line(case: Case) -> None:
    case.lives[0].odd.append(b"ERROR slow subscriber: 3 messages lost")


def early(case: Case) -> None:
    case.lives[0].lines[:0] = [(b"2", b"m3"), (b"2", b"m4"), (b"2", b"m5")]


def missing_at_a_store(case: Case) -> None:
    case.drop(2, b"m11")
    case.lives[2].lines = [line for line in case.lives[2].lines if line[1] != b"m11"]
    case.sent[11].answered = None


def another_message_under_a_number(case: Case) -> None:
    one, two = case.books[2].entries[0], case.books[2].entries[3]
    case.books[2].entries[0] = Entry(two.origin, two.number, one.tag, one.text)
    case.books[2].entries[3] = Entry(one.origin, one.number, two.tag, two.text)


def said_but_not_there(case: Case) -> None:
    for book in case.books:
        book.held.add((b"s0 inc", 77))


def gap_counted(case: Case) -> None:
    case.books[0].gaps = 3


BROKEN: list[tuple[Callable[[Case], None], str]] = [
    *(
        (wrong, "lost")
        for wrong in (lost_everywhere, lost_in_the_middle_of_a_life, lost_at_the_end_of_a_life)
    ),
    *((wrong, "lost") for wrong in (lost_at_the_beginning_of_a_life, lost_all_of_a_life)),
    *(
        (wrong, "doubled")
        for wrong in (doubled_in_a_log, doubled_number, doubled_to_a_subscriber, doubled_at_once)
    ),
    *((wrong, "order") for wrong in (reordered_to_a_subscriber, reordered_between_subscriptions)),
    *((wrong, "order") for wrong in (reordered_where_it_arose, reordered_by_a_connection)),
    (reordered_at_another_store, "order"),
    *((wrong, "foreign") for wrong in (foreign_in_a_log, refused_but_there, under_another_tag, odd_line)),
    *((wrong, "foreign") for wrong in (foreign_to_a_subscriber, unasked_to_a_subscriber)),
    (early, "early"),
    *(
        (wrong, "differ")
        for wrong in (missing_at_a_store, another_message_under_a_number, said_but_not_there)
    ),
    (gap_counted, "gaps"),
]


@pytest.mark.parametrize(("wrong", "rule"), BROKEN, ids=[wrong.__name__ for wrong, _ in BROKEN])
def test_broken_history_violates_its_rule(wrong: Callable[[Case], None], rule: str) -> None:
    case = deepcopy(Case())
    wrong(case)
    assert rule in case.rules()

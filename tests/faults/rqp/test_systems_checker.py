"""The checker of the two systems finds each violation: every rule has a small history that breaks only it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.disturbance import Fault
from tests.faults.rqp.checker import AFTERWARDS_S, check, count
from tests.faults.rqp.history import HEAD, Alone, Arrival, Letter, Put
from tests.faults.rqp.history import History as Books
from tests.faults.rqp.plan import WAYS, Way

COUNT = 10  # messages on each way, STEP_S apart
STEP_S = 10.0
DELAY_S = 0.5  # from sending to arrival
MCA, MCA_UNSURE = Way(0, "rqp-mca", True), Way(0, "rqp-mca", False)
CAST, CAST_UNSURE = Way(0, "rqp-cast", True), Way(0, "rqp-cast", False)


class Case:
    """A run without faults: ten messages on each way, all of which arrived."""

    def __init__(self) -> None:
        self.books = Books().books
        self.faults: list[Fault] = []
        self.alone: Alone | None = None
        for book in self.books.values():
            for number in range(COUNT):
                began = number * STEP_S
                put = Put(book.body(50), began, began + 0.1, ok=True)
                book.puts.append(put)
                book.arrivals.append(Arrival(put.body, began + DELAY_S))

    def rules(self) -> set[str]:
        return {violation.rule for violation in check(self.books.values(), self.faults, self.alone)}

    def happens(self, target: str, began: float, resumed: float | None = None) -> None:
        self.faults.append(Fault(target, "kill", began, began, began if resumed is None else resumed))

    def lose(self, way: Way, number: int) -> Put:
        book = self.books[way]
        put = book.puts[number]
        book.arrivals = [arrival for arrival in book.arrivals if arrival.body != put.body]
        return put

    def again(self, way: Way, number: int, at: float) -> None:
        """Let message `number` arrive once more."""
        self.books[way].arrivals.append(Arrival(self.books[way].puts[number].body, at))
        self.books[way].arrivals.sort(key=lambda arrival: arrival.at)

    def late(self, way: Way, number: int, at: float) -> None:
        """Let message `number` arrive at `at` instead."""
        self.lose(way, number)
        self.again(way, number, at)


def test_a_good_run_is_well() -> None:
    assert Case().rules() == set()


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_put_with_unknown_outcome_may_be_stored_or_not(way: Way) -> None:
    case = Case()
    case.books[way].puts[4].ended = None
    assert case.rules() == set()
    case.lose(way, 4)
    assert case.rules() == set()


def test_faults_excuse_repeated_late_and_lost_messages() -> None:
    case = Case()
    case.happens("edge 1", 40.2)
    case.again(MCA, 4, 41.0)
    case.again(MCA_UNSURE, 4, 41.0)
    case.again(CAST_UNSURE, 4, 41.0)
    case.late(CAST, 4, 51.0)
    case.lose(MCA_UNSURE, 5)
    case.lose(CAST_UNSURE, 5)
    assert case.rules() == {"lost"}  # message 5 was put AFTERWARDS_S too late to be excused
    case.happens("edge 0", 45.0 + AFTERWARDS_S)
    assert case.rules() == set()


def test_a_fault_lasts_until_all_serve_again() -> None:
    case = Case()
    case.lose(MCA_UNSURE, 5)
    case.happens("edge 1", 20.0, 50.0 - AFTERWARDS_S)
    assert case.rules() == set()
    case.faults[0].resumed = 49.9 - AFTERWARDS_S
    assert case.rules() == {"lost"}
    case.faults[0].resumed = None
    assert case.rules() == set()


def test_dead_letters_account_for_messages_even_if_they_are_not_whole() -> None:
    case = Case()
    for way, size in ((MCA_UNSURE, 76), (CAST_UNSURE, HEAD)):
        put = case.lose(way, 3)
        case.books[way].letters.append(Letter(put.body[:size], "partially_received"))
    assert case.rules() == set()
    assert count([case.books[CAST_UNSURE]]).dead == 1


def test_a_certain_message_may_be_dead_as_well_but_not_instead() -> None:
    case = Case()
    put = case.books[CAST].puts[3]
    case.books[CAST].letters.append(Letter(put.body[:40], "partially_received"))
    assert case.rules() == set()
    case.lose(CAST, 3)
    assert case.rules() == {"lost"}


def test_a_message_that_came_to_the_port_of_a_dead_session_is_injured_there() -> None:
    """Check that a message to the port of a dead session becomes injured there and is resent (rqp_cast.md 5.2)."""
    case = Case()
    body = case.books[CAST].puts[3].body
    case.books[CAST_UNSURE].letters.append(Letter(body, "injured"))
    assert case.rules() == {"foreign"}
    case.happens("edge 1", 5.0)
    assert case.rules() == set()
    case.books[MCA].letters.append(Letter(body, "injured"))
    assert case.rules() == {"foreign"}


def test_counted_losses_explain_messages_missing_in_dead_stores() -> None:
    case = Case()
    case.happens("store 1", 30.1)
    case.lose(MCA_UNSURE, 3)
    case.lose(CAST_UNSURE, 3)
    assert case.rules() == set()
    case.alone = Alone(30.0, 39.0, {"rqp-mca": 1, "rqp-cast": 0})
    assert case.rules() == {"uncounted"}
    case.alone = Alone(30.0, 39.0, {"rqp-mca": 1, "rqp-cast": 1})
    assert case.rules() == set()
    case.lose(MCA_UNSURE, 2)  # put before the fault, which then explains its loss
    case.happens("edge 1", 20.1)
    assert case.rules() == set()


def test_the_summary_counts() -> None:
    case = Case()
    case.lose(MCA_UNSURE, 3)
    case.again(MCA_UNSURE, 4, 41.0)
    case.books[MCA_UNSURE].puts[5].ended = None
    found = count([case.books[MCA_UNSURE]])
    assert (found.put, found.unknown, found.arrived, found.again, found.dead, found.gone) == (
        9,
        1,
        9,
        1,
        0,
        1,
    )


# violations to find


def lost_certain(case: Case) -> None:
    case.lose(MCA, 3)


def lost_certain_though_something_happened(case: Case) -> None:
    case.happens("edge 1", 30.0)
    case.lose(CAST, 3)


def lost_uncertain(case: Case) -> None:
    case.lose(CAST_UNSURE, 3)


def lost_at_the_end(case: Case) -> None:
    case.lose(MCA_UNSURE, COUNT - 1)


def lost_and_something_happened_elsewhere(case: Case) -> None:
    """Lose a message to system 1 while the cable to system 0, which it does not use, is cut."""
    case.happens("cable 0", 30.0)
    case.lose(MCA_UNSURE, 3)


def lost_by_cast_and_a_cable_was_cut(case: Case) -> None:
    """Lose a message of RQP/cast while a cable, which carries only RQP/MCA, is cut."""
    case.happens("cable 1", 30.0)
    case.lose(CAST_UNSURE, 3)


def lost_long_before_something_happened(case: Case) -> None:
    case.happens("edge 0", 75.0)
    case.lose(MCA_UNSURE, 3)


def doubled_by_cast_though_something_happened(case: Case) -> None:
    case.happens("store 1", 30.0)
    case.again(CAST, 3, 31.0)


def doubled_by_mca(case: Case) -> None:
    case.again(MCA, 3, 31.0)


def doubled_uncertain(case: Case) -> None:
    case.again(MCA_UNSURE, 3, 31.0)


def doubled_unknown(case: Case) -> None:
    case.books[CAST].puts[3].ended = None
    case.again(CAST, 3, 31.0)


def doubled_before_something_happened(case: Case) -> None:
    case.happens("edge 0", 32.0)
    case.again(MCA, 3, 31.0)


def overtaken(case: Case) -> None:
    case.late(MCA, 3, 41.0)


def overtaken_by_cast(case: Case) -> None:
    case.late(CAST_UNSURE, 3, 41.0)


def foreign(case: Case) -> None:
    case.books[MCA].arrivals.append(Arrival(b"unknown", 3.0))


def of_another_way(case: Case) -> None:
    case.books[MCA].arrivals.append(Arrival(case.books[CAST].puts[0].body, 3.0))


def changed(case: Case) -> None:
    book = case.books[CAST]
    book.arrivals[3] = Arrival(book.arrivals[3].body + b"!", 30.5)
    book.puts[3].ended = None


def refused_but_there(case: Case) -> None:
    case.books[CAST].puts[3].ok = False


def foreign_letter(case: Case) -> None:
    case.books[CAST].letters.append(Letter(b"unknown", "injured"))


def letter_of_another_way(case: Case) -> None:
    case.books[CAST].letters.append(Letter(case.books[MCA].puts[0].body, "injured"))


def letter_with_more_than_was_put(case: Case) -> None:
    case.books[CAST].letters.append(Letter(case.books[CAST].puts[0].body + b"!", "injured"))


def letter_of_what_was_refused(case: Case) -> None:
    put = case.lose(CAST, 3)
    put.ok = False
    case.books[CAST].letters.append(Letter(put.body, "injured"))


BROKEN: list[tuple[Callable[[Case], None], str]] = [
    *((wrong, "lost") for wrong in (lost_certain, lost_certain_though_something_happened, lost_uncertain)),
    *((wrong, "lost") for wrong in (lost_at_the_end, lost_and_something_happened_elsewhere)),
    *((wrong, "lost") for wrong in (lost_by_cast_and_a_cable_was_cut, lost_long_before_something_happened)),
    *((wrong, "doubled") for wrong in (doubled_by_cast_though_something_happened, doubled_by_mca)),
    *((wrong, "doubled") for wrong in (doubled_uncertain, doubled_unknown)),
    (doubled_before_something_happened, "doubled"),
    *((wrong, "order") for wrong in (overtaken, overtaken_by_cast)),
    *((wrong, "foreign") for wrong in (foreign, of_another_way, changed, refused_but_there)),
    *((wrong, "foreign") for wrong in (foreign_letter, letter_of_another_way)),
    *((wrong, "foreign") for wrong in (letter_with_more_than_was_put, letter_of_what_was_refused)),
]


@pytest.mark.parametrize(("wrong", "rule"), BROKEN, ids=[wrong.__name__ for wrong, _ in BROKEN])
def test_broken_history_violates_its_rule(wrong: Callable[[Case], None], rule: str) -> None:
    case = Case()
    wrong(case)
    assert case.rules() == {rule}

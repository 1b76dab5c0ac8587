"""The checker of the five nodes finds each violation: every rule has a small history that breaks only it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.faults.ring.checker import Counts, again, check, count
from tests.faults.ring.history import Answer, History, Pull, Push
from tests.faults.ring.nodes import is_one_ring
from tests.faults.ring.plan import QUEUES, WAYS
from tests.faults.ring.run import Outcome
from tests.faults.ring.verdict import verdict

COUNT = 10  # pushes per way
KEPT = next(way for way in WAYS if not way.is_pulled and way.goes_round)
PULLED = next(way for way in WAYS if way.is_pulled)


class Case:
    """A run without faults: ten pushes on each way, all answered OK and queued; one of them pulled."""

    def __init__(self) -> None:
        self.history = History()
        self.pushes: dict[str, list[Push]] = {}
        self.history.left = {queue: Counter() for queue in QUEUES}
        for way in WAYS:
            for number in range(COUNT):
                body = self.history.body(way.node, 50)
                push = Push(body, way.queue, way.node, way.goes_round, number, number + 0.1, Answer.OK)
                self.history.pushes.append(push)
                self.pushes.setdefault(str(way), []).append(push)
                self.left(way.queue)[body] = 1
        self.pull(self[PULLED][0])
        self.history.sent = [b"1", b"2"]
        self.history.inbox = Counter(self.history.sent)

    def __getitem__(self, way: object) -> list[Push]:
        return self.pushes[str(way)]

    def left(self, queue: str) -> Counter[bytes]:
        return self.history.left[queue]

    def pull(self, push: Push) -> None:
        self.history.pulls.append(Pull(push.body, push.queue, "node 2", push.began + 1))
        del self.left(push.queue)[push.body]

    def rules(self) -> set[str]:
        return {violation.rule for violation in check(self.history)}


def test_a_good_run_is_well() -> None:
    assert Case().rules() == set()


@pytest.mark.parametrize("way", [KEPT, PULLED], ids=str)
def test_acknowledged_push_must_be_somewhere(way: object) -> None:
    case = Case()
    push = case[way][3]
    del case.left(push.queue)[push.body]
    assert case.rules() == {"lost"}
    case.history.dead[push.queue] = Counter([push.body])
    assert case.rules() == set()


def test_unanswered_push_may_be_stored_or_not() -> None:
    case = Case()
    there, gone = case[KEPT][:2]
    there.answer = gone.answer = Answer.OPEN
    del case.left(gone.queue)[gone.body]
    assert case.rules() == set()


def test_no_push_counts_twice() -> None:
    case = Case()
    push = case[KEPT][3]
    case.left(push.queue)[push.body] = 2
    assert case.rules() == {"doubled"}


def test_unanswered_push_stored_twice_is_doubled() -> None:
    case = Case()
    push = case[KEPT][3]
    push.answer = Answer.OPEN
    case.left(push.queue)[push.body] = 2
    assert case.rules() == {"doubled"}


def test_message_that_is_queued_and_dead_is_doubled() -> None:
    case = Case()
    push = case[PULLED][3]
    case.history.dead[push.queue] = Counter([push.body])
    assert case.rules() == {"doubled"}


def test_a_message_may_be_given_out_again() -> None:
    """Check that a redelivery is allowed: a node may die after delivering a message and before recording it."""
    case = Case()
    first = case.history.pulls[0]
    case.history.pulls.append(Pull(first.body, first.queue, "node 4", first.at + 5))
    case.left(first.queue)[first.body] = 1
    assert case.rules() == set()
    assert again(case.history) == 1


def test_unpushed_messages_are_violations() -> None:
    case = Case()
    case.left("kept 0")[b"?"] = 1
    assert case.rules() == {"foreign"}


def test_nor_is_it_in_another_queue() -> None:
    case = Case()
    push = case[KEPT][3]
    other = next(queue for queue in QUEUES if queue != push.queue)
    case.left(other)[push.body] = 1
    assert case.rules() == {"foreign"}


def test_nor_given_out_damaged() -> None:
    case = Case()
    push = case[PULLED][3]
    case.history.pulls.append(Pull(push.body[:-1], push.queue, "node 2", push.began))
    assert case.rules() == {"foreign"}


@pytest.mark.parametrize("is_pulled", [False, True])
def test_refused_push_must_not_be_stored(is_pulled: bool) -> None:
    case = Case()
    push = case[PULLED if is_pulled else KEPT][3]
    push.answer, push.words = Answer.NO, "queue is full: pull from it, or push later"
    if is_pulled:
        case.pull(push)
    assert case.rules() == {"refused"}
    assert "queue is full" in check(case.history)[0].text


def test_message_sent_without_faults_must_arrive() -> None:
    case = Case()
    case.history.inbox[b"2"] = 0
    assert case.rules() == {"unsent"}


def test_a_message_to_the_inbox_may_come_twice() -> None:
    case = Case()
    case.history.inbox[b"2"] = 2
    assert case.rules() == set()


def test_counts() -> None:
    case = Case()
    case[KEPT][0].answer = Answer.OPEN
    case[KEPT][1].answer = Answer.NO
    assert count(case[KEPT]) == Counts(8, 1, 1)


def test_unread_stores_are_not_reported_as_losses() -> None:
    outcome = Outcome(7, Case().history, [], is_read=True)
    assert verdict(outcome).report == ""
    outcome.history.left.clear()
    assert "FAULT_SEED=7" in verdict(outcome).report
    outcome.is_read = False
    outcome.failures = ["there is one ring with one leader: not within 60 s"]
    assert "[stuck] there is one ring" in verdict(outcome).report
    assert "[lost]" not in verdict(outcome).report


# the ring, as nodes report it


def status(name: str, successor: str | None, leader: str, predecessor: str | None = "?") -> dict[str, Any]:
    return {
        "name": name,
        "successor": successor and {"name": successor},
        "predecessor": predecessor and {"name": predecessor},
        "leader": leader,
        "is_leader": leader == name,
    }


def test_one_ring() -> None:
    assert is_one_ring([status("a", "b", "c"), status("b", "c", "c"), status("c", "a", "c")])


@pytest.mark.parametrize(
    "nodes",
    [
        [None, None],
        [status("a", "b", "b"), None],
        [status("a", "b", "b"), status("b", None, "b")],
        [status("a", "b", "b", None), status("b", "a", "b")],
        [status("a", "a", "b"), status("b", "b", "b")],
        [status("a", "b", "a"), status("b", "a", "b")],
        [status("a", "b", "x"), status("b", "a", "x")],
        [status("a", "b", "b"), status("b", "c", "b")],
    ],
    ids=["no node", "one is away", "open", "no predecessor", "two", "two leaders", "none", "leads out"],
)
def test_no_ring(nodes: list[dict[str, Any] | None]) -> None:
    assert not is_one_ring(nodes)

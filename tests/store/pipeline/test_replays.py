"""A repeated call returns its old reply and changes nothing (docs/store.md)."""

from collections.abc import Callable
from typing import Any

import pytest
from redis.exceptions import ResponseError

from services.store import CommitPart, Delivery, Queue, QueueSpec
from services.store.model.errors import LeaseLost, QueueFull
from tests.servers import Client
from tests.store.desk import bodies, encode, numbered
from tests.store.lane import Lane, begin
from tests.store.pipeline.test_returns import singles

RING = 64  # answers kept (lua/schema.lua)


@pytest.fixture
def queue(client: Client) -> Queue:
    queue = Queue("orders", "q1", "main", "test", QueueSpec(ack_level="fsync", max_length=500))
    begin(client, queue)
    return queue


@pytest.fixture
def lane(client: Client, queue: Queue) -> Lane:
    return Lane(client, "one")


class Answers(list[Any]):
    """Callbacks that keep their answers."""

    def __call__(self, answer: Any, *_more: Any) -> None:
        self.append(answer)


def put(lane: Lane, queue: Queue, *messages: bytes) -> None:
    answers = Answers()
    lane.messages.publish(lane.source, queue, encode(*messages), "t", answers)
    lane.send()
    assert answers == [[]]


def take(lane: Lane, queue: Queue, want: int = 1000) -> list[Delivery]:
    answers = Answers()
    lane.messages.take(lane.source, queue, want, answers)
    lane.send()
    return singles(answers[0])


def counters(lane: Lane, queue: Queue) -> dict[bytes, bytes]:
    flat = lane.client.call("HGETALL", queue.keys[1])
    return {k: v for k, v in zip(flat[::2], flat[1::2], strict=True) if k != b"duplicates"}


def repeated(lane: Lane, queue: Queue, answer: Any) -> None:
    """Repeat the last call; check that it has the same reply and changes only the count of repeats."""
    before = counters(lane, queue)
    assert lane.again() == answer
    assert lane.again() == answer
    assert counters(lane, queue) == before


def test_repeated_operations_get_the_same_replies(lane: Lane, queue: Queue) -> None:
    put(lane, queue, *numbered(100))
    got = take(lane, queue, 50)
    answers = Answers()
    lane.messages.settle(lane.source, got[:10], answers)
    lane.messages.release(lane.source, got[10:20], failed=True, done=answers)
    lane.messages.reject(lane.source, got[20:22], "refused", "no", answers)
    lane.messages.bury(lane.source, queue, encode(b"x")[0], "t", "injured", "", answers)
    lane.messages.publish(lane.source, queue, encode(*numbered(5)), "t", answers)
    lane.messages.take(lane.source, queue, 30, answers)
    lane.messages.count(lane.source, queue, answers)
    lane.idempotent.commit(lane.source, "t1", [CommitPart(queue, got[22:30], encode(b"y"), "t")], answers)
    repeated(lane, queue, lane.send())
    assert len(answers) == 8
    assert counters(lane, queue)[b"acked"] == b"18"
    assert int(lane.client.call("HGET", queue.keys[1], "duplicates")) == 2


@pytest.mark.parametrize("want", [1, 31, 32, 33, 70, 100])
def test_repeated_take_returns_the_same_messages(lane: Lane, queue: Queue, want: int) -> None:
    """Check a repeated take of returned and new messages, parts of entries, and counts (tmq.md 6.2)."""
    put(lane, queue, *numbered(100))
    got = take(lane, queue, 20)
    answers = Answers()
    lane.messages.release(lane.source, [got[3], got[17]], failed=True, done=answers)
    lane.messages.release(lane.source, [got[9]], failed=True, to_end=True, done=answers)
    lane.send()
    lane.messages.take(lane.source, queue, want, answers)
    answer = lane.send()
    repeated(lane, queue, answer)
    assert len(bodies(answers[-1])) == min(want, 83)


def test_repeated_take_returns_delivery_counts(lane: Lane, queue: Queue) -> None:
    put(lane, queue, *numbered(3))
    answers = Answers()
    lane.messages.release(lane.source, take(lane, queue), failed=True, to_end=True, done=answers)
    lane.messages.take(lane.source, queue, 10, answers)
    repeated(lane, queue, lane.send())
    assert [(d.acquired, d.failed) for d in answers[1]] == [(2, 1)] * 3


def test_other_calls_may_run_before_the_repetition(lane: Lane, queue: Queue, client: Client) -> None:
    put(lane, queue, *numbered(64))
    other = Lane(client, "two")
    answers = Answers()
    lane.messages.take(lane.source, queue, 20, answers)
    answer = lane.send()
    theirs = take(other, queue, 30)
    other.messages.settle(other.source, theirs[:25], answers)
    other.messages.release(other.source, theirs[25:], failed=False, done=answers)
    other.messages.publish(other.source, queue, encode(b"more"), "t", answers)
    other.send()
    repeated(lane, queue, answer)


def test_take_is_repeated_whole_after_compaction(lane: Lane, queue: Queue, client: Client) -> None:
    """Check that a take is repeated in full after upkeep compacted its entry."""
    put(lane, queue, *numbered(32))
    other = Lane(client, "two")
    theirs = take(other, queue, 28)
    answers = Answers()
    lane.messages.take(lane.source, queue, 10, answers)
    answer = lane.send()
    other.messages.settle(other.source, theirs, answers)
    other.send()
    lane.function("upkeep", queue.keys, -1000, 500, 0)
    assert client.call("HLEN", queue.keys[7]) == 1
    repeated(lane, queue, answer)
    assert bodies(answers[0]) == numbered(4, 28)


def test_refusals_are_repeated(lane: Lane, queue: Queue) -> None:
    put(lane, queue, *numbered(490))
    got = take(lane, queue, 1)
    answers = Answers()
    lane.messages.publish(lane.source, queue, encode(*numbered(50)), "t", answers)
    lane.messages.settle(lane.source, got, answers)
    lane.messages.settle(lane.source, got, answers)
    answer = lane.send()
    repeated(lane, queue, answer)
    assert {type(why) for _, why in answers[0]} == {QueueFull}
    assert [type(why) for why in answers[1:]] == [type(None), LeaseLost]


def test_late_call_does_nothing(lane: Lane, queue: Queue) -> None:
    """Check that a late call does nothing (tmq.md 7.2)."""
    answers = Answers()
    lane.messages.publish(lane.source, queue, encode(b"x"), "t", answers)
    with pytest.raises(ResponseError, match=r"^LATE"):
        lane.send(deadline_ms=1)
    for _ in range(2):
        with pytest.raises(ResponseError, match=r"^LATE"):
            lane.again()
    assert answers == []
    assert take(lane, queue) == []  # the sequence continues after it


def test_repetition_is_answered_after_its_deadline(lane: Lane, queue: Queue) -> None:
    """Check that a repetition is answered after its deadline, as its call was executed in time."""
    seconds, micros = lane.client.call("TIME")
    now = int(seconds) * 1000 + int(micros) // 1000
    answers = Answers()
    lane.messages.publish(lane.source, queue, encode(b"x"), "t", answers)
    answer = lane.send(deadline_ms=now + 200)
    while (at := lane.client.call("TIME")) and int(at[0]) * 1000 + int(at[1]) // 1000 <= now + 200:
        pass
    repeated(lane, queue, answer)


def test_gap_in_sequence_numbers_is_refused(lane: Lane, queue: Queue) -> None:
    put(lane, queue, b"a")
    lane.sequence += 1
    answers = Answers()
    lane.messages.publish(lane.source, queue, encode(b"x"), "t", answers)
    with pytest.raises(ResponseError, match=r"^GAP 1"):
        lane.send()
    assert answers == []


def test_replies_are_kept_for_a_limited_time(lane: Lane, queue: Queue) -> None:
    put(lane, queue, b"first")
    first = lane.command
    for _ in range(RING - 1):
        put(lane, queue, b"x")
    assert lane.client.call(*first)[:-1] == [1]
    put(lane, queue, b"x")
    with pytest.raises(ResponseError, match=r"^TOOOLD 65"):
        lane.client.call(*first)
    assert len(take(lane, queue)) == 65


def test_swept_sessions_repetition_leases_nothing(lane: Lane, queue: Queue, client: Client) -> None:
    """Check that a repetition by a swept session leases nothing, as its messages were returned."""
    other = Lane(client, "two")
    put(lane, queue, *numbered(10))
    answers = Answers()
    lane.messages.publish(lane.source, queue, encode(b"x"), "t", answers)
    lane.messages.take(lane.source, queue, 5, answers)
    lane.send()
    lane.die()
    assert other.fence() == ["one"]
    fenced = lane.again()
    assert fenced[0] == 1
    assert len(fenced[1]) > 1
    assert other.sweep("one", [queue]) == (5, 0, 0)
    assert lane.again() == [1, [0]]
    lane.messages.count(lane.source, queue, answers)
    with pytest.raises(ResponseError, match=r"^SESSION"):
        lane.send()
    assert bodies(take(other, queue)) == [*numbered(10), b"x"]


def test_repetition_is_answered_after_queue_deletion(lane: Lane, queue: Queue) -> None:
    put(lane, queue, *numbered(3))
    answers = Answers()
    lane.messages.take(lane.source, queue, 2, answers)
    lane.send()
    lane.function("delete", [*queue.keys, *lane.keys.bindings], queue.qid, "Delete")
    assert lane.again() == [[0]]


def test_repetition_is_answered_in_a_new_generation(lane: Lane, queue: Queue) -> None:
    put(lane, queue, *numbered(40))
    answers = Answers()
    lane.messages.publish(lane.source, queue, encode(*numbered(40, 40)), "t", answers)
    lane.messages.take(lane.source, queue, 50, answers)
    answer = lane.send()
    lane.client.call("SET", lane.keys.epoch, "dataset.2")
    with pytest.raises(ResponseError, match=r"^EPOCH dataset.2"):
        lane.again()
    old, lane.epoch = lane.epoch, "dataset.2"
    lane.command = tuple("dataset.2" if word == old else word for word in lane.command)
    repeated(lane, queue, answer)
    put(lane, queue, b"new")
    lane.messages.settle(lane.source, answers[1], answers)
    lane.send()
    assert bodies(take(lane, queue)) == [*numbered(30, 50), b"new"]


@pytest.mark.parametrize("epoch", ["", "other.1"])
def test_other_dataset_is_not_changed(lane: Lane, queue: Queue, epoch: str) -> None:
    """Check that every function compares the epoch and leaves another dataset unchanged."""
    lane.client.call("SET", lane.keys.epoch, epoch) if epoch else lane.client.call("DEL", lane.keys.epoch)
    calls: list[Callable[[], Any]] = [
        lambda: put(lane, queue, b"x"),
        lambda: lane.control("open"),
        lambda: lane.control("beat"),
        lambda: lane.fence(),
        lambda: lane.function("declare", [queue.keys[1], *lane.keys.bindings], "q1", "m", ""),
        lambda: lane.function("delete", [*queue.keys, *lane.keys.bindings], "q1", "Delete"),
        lambda: lane.function("upkeep", queue.keys, 0, 1, 0),
        lambda: lane.function("reserve", [queue.keys[1]], "me", 1000),
        lambda: lane.function("release", [queue.keys[1]], "me", 1),
        lambda: lane.function("redrive", [*queue.keys, *queue.keys], "", "1-1"),
        lambda: lane.function("purge", [queue.keys[1], queue.keys[6]], "1-1"),
        lambda: lane.function("log_declare", [lane.keys.log[1]], "fsync", 1, 1),
        lambda: lane.function("log_state", lane.keys.log),
        lambda: lane.function("log_accept", lane.keys.log, "0", "", 0),
        lambda: lane.function("log_trim", lane.keys.log),
        lambda: lane.function("log_lease", [lane.keys.log_lease("s")], "me", 1),
    ]
    for call in calls:
        with pytest.raises(ResponseError, match=rf"^EPOCH {epoch or 'none'}"):
            call()
    assert lane.client.call("EXISTS", queue.keys[0]) == 0

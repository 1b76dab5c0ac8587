"""The checker finds the one violation in each of these scripted histories."""

from __future__ import annotations

import pytest

from protos.tmq import Operation
from tests.faults.checker import QueueCounts, check_counts
from tests.faults.history import Connection, Ended, Fault, Trouble
from tests.faults.reading import Outcome, read
from tests.faults.script import Q, R, Script, stored

# plain messages


def test_stored_and_settled_is_well(script: Script) -> None:
    stored(script, b"1", b"2")
    script.drain(b"1", b"2")
    assert script.broken() == []


def test_stored_and_never_seen_is_lost(script: Script) -> None:
    stored(script, b"1", b"2")
    script.drain(b"2")
    assert script.broken() == ["lost"]


def test_dead_is_not_lost(script: Script) -> None:
    stored(script, b"1")
    script.dead[Q] = [b"1"]
    assert script.broken() == []


@pytest.mark.parametrize("body", [b"never put", b"put elsewhere"])
def test_message_never_put_is_invented(script: Script, body: bytes) -> None:
    script.put(script.connection(), b"put elsewhere", queue=R)
    script.drain(b"put elsewhere", queue=R)
    script.drain(body)
    assert script.broken()[0] == "invented"


def test_message_never_put_is_invented_among_dead_letters(script: Script) -> None:
    script.dead[Q] = [b"1"]
    assert script.broken() == ["invented"]


def test_failed_put_must_not_appear(script: Script) -> None:
    script.put(script.connection(), b"1", ok=False)
    assert script.broken() == []
    script.drain(b"1")
    assert script.broken() == ["invented"]


def test_unanswered_put_may_appear_once(script: Script) -> None:
    script.put(script.connection(), b"1", ok=None)
    assert script.broken() == []
    script.drain(b"1")
    assert script.broken() == []
    script.drain(b"1")
    assert script.broken() == ["repeated"]


def test_settled_message_is_never_redelivered(script: Script) -> None:
    stored(script, b"1")
    script.drain(b"1")
    script.drain(b"1")
    assert script.broken() == ["repeated"]


def test_settled_message_is_not_a_dead_letter(script: Script) -> None:
    stored(script, b"1")
    script.drain(b"1")
    script.dead[Q] = [b"1"]
    assert script.broken() == ["repeated"]


def test_a_further_answer_settles(script: Script) -> None:
    stored(script, b"1", b"2")
    to = script.connection()
    script.take(to, b"1")
    script.take(to, b"2")
    script.end(to, Ended.BROKEN)
    script.drain(b"2")
    assert script.broken() == []
    script.drain(b"1")
    assert script.broken() == ["repeated"]


@pytest.mark.parametrize("operation", [Operation.ENQ, Operation.TS, Operation.DNQ])
def test_an_answer_that_the_store_did_not_give_settles_nothing_for_sure(
    script: Script, operation: Operation
) -> None:
    stored(script, b"1")
    to = script.connection()
    script.take(to, b"1")
    if operation is not Operation.TS:
        script.ask(to, operation, ok=False, body=b"2")
    else:  # the edge alone answers the ENQ inside
        script.ask(to, Operation.TS)
        script.put(to, b"2")
    script.end(to, Ended.BROKEN)
    script.drain(b"1")
    assert script.broken() == []


def test_a_commit_is_an_answer_of_the_store(script: Script) -> None:
    stored(script, b"1")
    to = script.connection()
    script.take(to, b"1")
    script.ask(to, Operation.TS)
    script.put(to, b"2")
    script.ask(to, Operation.TE)
    script.drain(b"1", b"2")
    assert script.broken() == ["repeated"]


@pytest.mark.parametrize("how", [Ended.RESET, Ended.BROKEN])
def test_unsettled_message_is_redelivered(script: Script, how: Ended) -> None:
    stored(script, b"1")
    to = script.connection()
    script.take(to, b"1")
    script.end(to, how)
    assert script.broken() == ["lost"]
    script.drain(b"1")
    assert script.broken() == []


def test_a_request_under_way_settles_or_not(script: Script) -> None:
    stored(script, b"1")
    to = script.connection()
    script.take(to, b"1")
    script.ask(to, Operation.DNQ, ok=None)
    script.end(to, Ended.BROKEN)
    assert script.broken() == []
    script.drain(b"1")
    assert script.broken() == []


def test_a_fin_settles(script: Script) -> None:
    stored(script, b"1")
    to = script.connection()
    script.take(to, b"1")
    script.end(to, Ended.FIN)
    assert script.broken() == []
    script.drain(b"1")
    assert script.broken() == ["repeated"]


def test_a_fin_settles_only_if_the_edge_lives_on(script: Script) -> None:
    stored(script, b"1")
    to = script.connection()
    script.take(to, b"1")
    script.end(to, Ended.FIN)
    script.drain(b"1")
    script.faults = [Fault("store", "kill", 99.0, 99.5), Fault("edge 1", "kill", 99.0, 99.5)]
    assert script.broken() == ["repeated"]
    script.faults.append(Fault("edge 0", "kill", 99.0, 99.5))
    assert script.broken() == []


def test_the_fin_of_a_killed_edge_settles_nothing(script: Script) -> None:
    stored(script, b"1")
    to = script.connection()
    taken = script.take(to, b"1")
    script.end(to, Ended.FIN)
    # restarted before the FIN arrived
    script.faults = [Fault("edge 0", "kill", taken.sent + 0.5, taken.sent + 1.5)]
    script.drain(b"1")
    assert script.broken() == []


def test_a_lost_session_explains_as_much_as_a_killed_edge(script: Script) -> None:
    stored(script, b"1")
    to = script.connection()
    script.take(to, b"1")
    script.end(to, Ended.FIN)
    script.drain(b"1")
    script.troubles = [Trouble(0, 99.0, "session_lost", "")]
    assert script.broken() == []


def test_deliveries_that_overlap_may_have_been_in_either_order(script: Script) -> None:
    stored(script, b"1")
    returned = script.connection()
    first = script.take(returned, b"1")
    script.end(returned, Ended.RESET)
    script.drain(b"1")
    assert script.broken() == []
    first.answered = 99.0  # sent before the other, answered after it: either may be the later one
    assert script.broken() == []
    first.sent = 98.0
    assert script.broken() == ["lost", "repeated"]


# transactions


def transaction(script: Script, end: Operation | None, ok: bool | None, *bodies: bytes) -> Connection:
    """Take "0" from one queue and put these bodies into both, in one transaction."""
    to = script.connection()
    script.ask(to, Operation.TS)
    script.take(to, b"0")
    for index, body in enumerate(bodies):
        script.put(to, body, queue=(Q, R)[index % 2])
    if end is not None:
        script.ask(to, end, ok)
    script.end(to, Ended.BROKEN)
    return to


def test_5_3_committed_transaction_took_effect(script: Script) -> None:
    stored(script, b"0")
    transaction(script, Operation.TE, True, b"1", b"2")
    script.drain(b"1")
    assert script.broken() == ["lost"]
    script.drain(b"2", queue=R)
    assert script.broken() == []
    script.drain(b"0")
    assert script.broken() == ["repeated"]


@pytest.mark.parametrize(
    ("end", "ok"),
    [(Operation.TE, False), (Operation.TA, True), (Operation.TA, None), (Operation.TA, False), (None, None)],
)
def test_5_4_uncommitted_transaction_had_no_effect(script: Script, end: Operation, ok: bool | None) -> None:
    stored(script, b"0")
    transaction(script, end, ok, b"1")
    assert script.broken() == ["lost"]  # "0" was not redelivered
    script.drain(b"0")
    assert script.broken() == []
    script.drain(b"1")
    assert script.broken() == ["invented"]


def test_an_unknown_commit_is_all_or_nothing(script: Script) -> None:
    stored(script, b"0")
    transaction(script, Operation.TE, None, b"1", b"2")
    assert script.broken() == ["lost"]  # if no put took effect, "0" was returned
    script.drain(b"1")
    assert sorted(script.broken()) == ["lost", "partial"]
    script.drain(b"2", queue=R)
    assert script.broken() == []
    script.drain(b"0")
    assert script.broken() == ["repeated"]


def test_an_unknown_commit_may_have_done_nothing(script: Script) -> None:
    stored(script, b"0")
    transaction(script, Operation.TE, None, b"1", b"2")
    script.drain(b"0")
    assert script.broken() == []


def test_an_unknown_commit_of_takes_is_all_or_nothing(script: Script) -> None:
    stored(script, b"0", b"1")
    to = script.connection()
    script.ask(to, Operation.TS)
    script.take(to, b"0")
    script.take(to, b"1")
    script.ask(to, Operation.TE, ok=None)
    assert script.broken() == []
    script.drain(b"0")
    assert script.broken() == ["lost"]
    script.drain(b"1")
    assert script.broken() == []


def test_unknown_commit_with_a_take_settled_elsewhere_had_no_effect(script: Script) -> None:
    """Check that a settled, overlapping delivery shows that an unanswered commit failed.

    A draining edge returns a message at once, maybe before the client has read the answer that delivered it.
    """
    stored(script, b"0")
    to = script.connection()
    script.ask(to, Operation.TS)
    first = script.take(to, b"0")
    script.ask(to, Operation.TE, ok=None)
    second = script.take(script.drain(), b"0")
    to.requests[-1].sent, first.answered = second.sent + 3, second.sent + 0.5
    script.put(script.history.connections[-1], b"1")  # settles the second delivery
    script.drain(b"1")
    assert script.broken() == []


def test_put_refused_in_a_transaction_is_not_part_of_it(script: Script) -> None:
    to = script.connection()
    script.ask(to, Operation.TS)
    script.put(to, b"1")
    script.put(to, b"2", ok=False)
    script.ask(to, Operation.TE, ok=None)
    script.drain(b"1")
    assert script.broken() == []
    script.drain(b"2")
    assert script.broken() == ["invented"]


# counters


def test_store_counters_agree_with_the_clients(script: Script) -> None:
    stored(script, b"1", b"2", b"3")
    script.put(script.connection(), b"4", ok=None)
    script.drain(b"1", b"2")
    script.dead[Q] = [b"3"]
    reading = read(script.history, script.dead)
    assert list(check_counts(reading, {Q: QueueCounts(3, 2, 1, 0, 0)})) == []
    for wrong in ((4, 2, 1, 0, 0), (3, 3, 1, 0, 0), (3, 2, 0, 0, 0), (3, 2, 1, 1, 0), (3, 2, 1, 0, 1)):
        assert [v.rule for v in check_counts(reading, {Q: QueueCounts(*wrong)})] == ["counters"]


def test_unknown_outcome_is_inferred_from_deliveries(script: Script) -> None:
    script.put(script.connection(), b"1", ok=None)
    transaction(script, Operation.TE, None, b"2")
    script.drain(b"2")
    reading = read(script.history, {})
    assert reading.messages[b"1"].outcome is Outcome.UNKNOWN
    assert reading.messages[b"2"].outcome is Outcome.DONE
    assert reading.transactions[0].judged

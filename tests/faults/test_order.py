"""The order checker finds each violation of the guarantees in order.py."""

from __future__ import annotations

import pytest

from protos.tmq import Operation
from tests.faults.history import Ended, Fault
from tests.faults.order import check_abort, check_drain, check_first
from tests.faults.reading import read
from tests.faults.script import Q, Script, stored


def test_first_deliveries_are_in_order(script: Script) -> None:
    stored(script, b"1", b"2")
    script.drain(b"2", b"1")
    assert [v.rule for v in check_first(read(script.history, {}), Q)] == ["order"]


def test_an_unseen_take_explains_one_message_that_comes_late(script: Script) -> None:
    stored(script, b"1", b"2", b"3")
    script.ask(script.connection(), Operation.DNQ, ok=None)
    script.drain(b"2", b"1", b"3")
    assert list(check_first(read(script.history, {}), Q)) == []


@pytest.mark.parametrize(("waited_s", "rules"), [(1.0, ["order"]), (4.0, [])])
def test_a_late_none_may_be_an_unseen_take(script: Script, waited_s: float, rules: list[str]) -> None:
    stored(script, b"1", b"2")
    none = script.ask(script.connection(), Operation.DNQ, ok=False)
    none.answered = none.sent + waited_s
    script.drain(b"2", b"1")
    assert [v.rule for v in check_first(read(script.history, {}), Q)] == rules


@pytest.mark.parametrize(
    ("kind", "edge", "rules"), [("term", 0, []), ("kill", 0, ["order"]), ("term", 1, ["order"])]
)
def test_a_none_in_a_transaction_that_its_edge_gave_up_may_be_an_unseen_take(
    script: Script, kind: str, edge: int, rules: list[str]
) -> None:
    """Check that a "none" of a stopping edge inside a transaction may hide a lease that it returned (5.4)."""
    stored(script, b"1", b"2")
    to = script.connection()
    script.ask(to, Operation.TS)
    none = script.ask(to, Operation.DNQ, ok=False)
    script.faults.append(Fault(f"edge {edge}", kind, none.sent + 0.5, none.sent + 2))
    script.drain(b"2", b"1")
    assert [v.rule for v in check_first(read(script.history, {}, script.faults), Q)] == rules


def test_a_none_outside_a_transaction_is_no_unseen_take_though_its_edge_stops(script: Script) -> None:
    stored(script, b"1", b"2")
    none = script.ask(script.connection(), Operation.DNQ, ok=False)
    script.faults.append(Fault("edge 0", "term", none.sent + 0.5, none.sent + 2))
    script.drain(b"2", b"1")
    assert [v.rule for v in check_first(read(script.history, {}, script.faults), Q)] == ["order"]


def test_an_unseen_take_does_not_explain_two(script: Script) -> None:
    stored(script, b"1", b"2", b"3")
    script.ask(script.connection(), Operation.DNQ, ok=None)
    script.drain(b"3", b"1", b"2")
    assert [v.rule for v in check_first(read(script.history, {}), Q)] == ["order"]


def test_an_unseen_take_explains_nothing_before_it(script: Script) -> None:
    stored(script, b"1", b"2")
    script.drain(b"2")
    script.ask(script.connection(), Operation.DNQ, ok=None)
    script.drain(b"1")
    assert [v.rule for v in check_first(read(script.history, {}), Q)] == ["order"]


def test_connections_have_no_order_among_them(script: Script) -> None:
    stored(script, b"1")
    stored(script, b"2")
    drain = script.drain(b"2", b"1")
    reading = read(script.history, {})
    assert [*check_first(reading, Q), *check_drain(reading, drain)] == []


def test_a_transaction_stands_where_it_ended(script: Script) -> None:
    to = script.connection()
    script.ask(to, Operation.TS)
    script.put(to, b"1")
    script.ask(to, Operation.TE)
    script.put(to, b"2")
    drain = script.drain(b"2", b"1")
    reading = read(script.history, {})
    assert [v.rule for v in check_first(reading, Q)] == ["order"]
    assert [v.rule for v in check_drain(reading, drain)] == ["order"]


def test_the_drain_is_in_order_whatever_was_returned(script: Script) -> None:
    stored(script, b"1", b"2")
    back = script.connection()
    script.take(back, b"1")
    script.take(back, b"2")
    script.end(back, Ended.RESET)
    drain = script.drain(b"2", b"1")
    reading = read(script.history, {})
    assert list(check_first(reading, Q)) == []
    assert [v.rule for v in check_drain(reading, drain)] == ["order"]


def aborted(script: Script, following: bytes) -> None:
    stored(script, b"1", b"2")
    to = script.connection()
    script.ask(to, Operation.TS)
    script.take(to, b"1")
    script.ask(to, Operation.TA)
    script.take(to, following)


def test_5_4_aborted_messages_are_redelivered_next(script: Script) -> None:
    aborted(script, b"1")
    assert list(check_abort(read(script.history, {}), Q)) == []


def test_5_4_aborted_messages_are_not_overtaken(script: Script) -> None:
    aborted(script, b"2")
    assert [v.rule for v in check_abort(read(script.history, {}), Q)] == ["order"]
    assert list(check_abort(read(script.history, {Q: [b"1"]}), Q)) == []

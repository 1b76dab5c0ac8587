"""The table of the sending MCA drives the code, and the spec shows it (rqp_mca.md 3)."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

import protos.rqp_mca
from protos.diagrams import mermaid
from protos.rqp_mca import TRANSITIONS, Move, State
from protos.types import LocalError
from tests.protos.rqp_mca_senders import (
    AVAILABLE,
    CONFIRM,
    RELIABLE,
    UNRELIABLE,
    YOURS,
    asking,
    idle,
    requesting,
    sending,
    settled,
    stopped,
)

ROWS = {(state, move) for state, moves in TRANSITIONS.items() for move in moves}
IDLE, ASKED, REQUESTED, SENT, STOPPED = (
    State.IDLE,
    State.AWAITING_QUEUE_REQUEST,
    State.AWAITING_QUEUE,
    State.AWAITING_MESSAGE,
    State.STOPPED,
)


def refused_twice():
    """Return a sender with a message in flight for the second time, after a lost connection."""
    sender = sending("a")
    sender.lost("a", 0.0)
    sender.received("a", AVAILABLE, 0.0)
    sender.received("a", YOURS, 0.0)
    return sender


# For each row: a sender in that state, and the event of that row.
WAYS: dict[tuple[State, Move], tuple[Callable, Callable]] = {
    (IDLE, Move.SENT_RELIABLE): (lambda: settled("a"), lambda one: one.put(RELIABLE, 1, 0.0)),
    (IDLE, Move.SENT_UNRELIABLE): (lambda: settled("a"), lambda one: one.put(UNRELIABLE, 1, 0.0)),
    (IDLE, Move.ASKED): (lambda: idle("a"), lambda one: one.put(RELIABLE, 1, 0.0)),
    (ASKED, Move.AVAILABLE): (lambda: asking("a", "b"), lambda one: one.received("a", AVAILABLE, 0.0)),
    (ASKED, Move.ASKED_NEWCOMER): (lambda: asking("a"), lambda one: one.peers_changed({"a": 1, "b": 1}, 0.0)),
    (ASKED, Move.PEER_GONE): (lambda: asking("a", "b"), lambda one: one.lost("a", 0.0)),
    (ASKED, Move.ASKED_ENOUGH): (lambda: asking("a"), lambda one: one.received("a", AVAILABLE, 0.0)),
    (ASKED, Move.NOBODY_RELIABLE): (lambda: asking("a"), lambda one: one.on_time(2.0)),
    (ASKED, Move.NOBODY_UNRELIABLE): (lambda: asking("a", kind=UNRELIABLE), lambda one: one.on_time(2.0)),
    (ASKED, Move.WITHDRAWN): (lambda: asking("a"), lambda one: one.withdraw()),
    (REQUESTED, Move.PEER_GONE): (lambda: requesting("a", "b"), lambda one: one.lost("b", 0.0)),
    (REQUESTED, Move.CANDIDATE_FAILED): (lambda: requesting("a", "b"), lambda one: one.on_time(2.0)),
    (REQUESTED, Move.RESERVED_RELIABLE): (
        lambda: requesting("a"),
        lambda one: one.received("a", YOURS, 0.0),
    ),
    (REQUESTED, Move.RESERVED_UNRELIABLE): (
        lambda: requesting("a", kind=UNRELIABLE),
        lambda one: one.received("a", YOURS, 0.0),
    ),
    (REQUESTED, Move.NOBODY_RELIABLE): (lambda: requesting("a"), lambda one: one.on_time(2.0)),
    (REQUESTED, Move.NOBODY_UNRELIABLE): (
        lambda: requesting("a", kind=UNRELIABLE),
        lambda one: one.on_time(2.0),
    ),
    (REQUESTED, Move.WITHDRAWN): (lambda: requesting("a"), lambda one: one.withdraw()),
    (SENT, Move.SENT_RELIABLE): (lambda: sending("a", window=2), lambda one: one.put(RELIABLE, 1, 0.0)),
    (SENT, Move.CONFIRMED_SOME): (
        lambda: sending("a", count=2, window=2),
        lambda one: one.received("a", CONFIRM, 0.0),
    ),
    (SENT, Move.CONFIRMED_ALL): (lambda: sending("a"), lambda one: one.received("a", CONFIRM, 0.0)),
    (SENT, Move.FAILED): (lambda: sending("a"), lambda one: one.on_time(10.0)),
    (SENT, Move.FAILED_AGAIN): (refused_twice, lambda one: one.on_time(10.0)),
    (SENT, Move.WITHDRAWN): (lambda: sending("a"), lambda one: one.abandon()),
    (STOPPED, Move.PAUSED_ENOUGH): (lambda: stopped("a"), lambda one: one.on_time(3.0)),
    (STOPPED, Move.WITHDRAWN): (lambda: stopped("a"), lambda one: one.withdraw()),
}


def test_every_row_has_a_way_and_every_move_a_row() -> None:
    assert WAYS.keys() == ROWS
    assert {move for _, move in ROWS} == set(Move)
    assert TRANSITIONS.keys() == set(State)


@pytest.mark.parametrize(("state", "move"), WAYS, ids=lambda item: item.name)
def test_a_move_that_the_table_lacks_is_not_made(
    state: State, move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring, push = WAYS[state, move]
    push(bring())  # with it, it is
    sender = bring()
    assert sender.state is state
    monkeypatch.delitem(TRANSITIONS[state], move)
    with pytest.raises(LocalError, match=f"move {move.name} is not allowed in state {state.name}"):
        push(sender)
    assert sender.state is state


def test_nothing_but_a_move_sets_the_state() -> None:
    (folder,) = protos.rqp_mca.__path__
    setters = [
        (path.name, function.name)
        for path in sorted(Path(folder).glob("*.py"))
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr == "_state" and isinstance(node.ctx, ast.Store)
    ]
    assert setters == [("machine.py", "__init__"), ("machine.py", "_move")]


def test_the_spec_shows_the_table() -> None:
    spec = Path(protos.rqp_mca.__path__[0]).with_suffix(".md").read_text()
    _, _, behind = spec.partition("<!-- sender diagram -->\n```mermaid\n")
    shown, _, _ = behind.partition("```\n<!-- end of diagram -->\n")
    assert shown == mermaid(TRANSITIONS)
    assert not any(mark in move.value for move in Move for mark in ":;")

"""The tables of moves drive the code, and are what the spec shows (rqp_cast.md 4, 5)."""

from __future__ import annotations

import ast
import enum
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from protos.diagrams import mermaid
from protos.rqp_cast import (
    RECEIVER_TRANSITIONS,
    SENDER_TRANSITIONS,
    Insertion,
    Kept,
    Outgoing,
    Quality,
    ReceiverMove,
    ReceiverSession,
    ReceiverState,
    Sender,
    SenderMove,
    SenderSettings,
    SenderState,
    Unanswered,
    Unheard,
    Why,
    receiver,
    sender,
)
from protos.types import LocalError
from tests.protos.rqp_cast_samples import (
    FAILURE,
    KEY,
    RECEIVER,
    SUCCESS,
    UNCERTAIN,
    approving,
    asking,
    broken_off,
    chosen,
    confirming,
    connecting,
    data_msg,
    inserting,
    offered,
    sending,
)

SPEC = Path(__file__).parents[2] / "protos" / "rqp_cast.md"


def paused() -> Sender:
    machine = approving()
    machine.failed(0.0)
    return machine


def ended() -> ReceiverSession:
    session = offered()
    session.lost(0.0)
    return session


SENDERS: dict[SenderState, Callable[[], Sender]] = {
    SenderState.IDLE: lambda: Sender(KEY, SenderSettings()),
    SenderState.WAIT_FOR_RECEIVER: asking,
    SenderState.APPROVING: approving,
    SenderState.CONNECTING: connecting,
    SenderState.SENDING: sending,
    SenderState.WAIT_FOR_CONFIRMATION: confirming,
    SenderState.BROKEN_OFF: broken_off,
    SenderState.PAUSING: paused,
}
SESSIONS: dict[ReceiverState, Callable[[], ReceiverSession]] = {
    ReceiverState.WAIT_FOR_APPROVAL: offered,
    ReceiverState.WAIT_FOR_MESSAGE: chosen,
    ReceiverState.INSERTING: inserting,
    ReceiverState.END: ended,
}


@pytest.mark.parametrize("state", SenderState)
@pytest.mark.parametrize("move", SenderMove)
def test_a_sender_makes_the_moves_of_its_table_and_no_other(state: SenderState, move: SenderMove) -> None:
    check_move(SENDERS[state](), state, move, SENDER_TRANSITIONS)


@pytest.mark.parametrize("state", ReceiverState)
@pytest.mark.parametrize("move", ReceiverMove)
def test_a_session_makes_the_moves_of_its_table_and_no_other(
    state: ReceiverState, move: ReceiverMove
) -> None:
    check_move(SESSIONS[state](), state, move, RECEIVER_TRANSITIONS)


def check_move(machine: Any, state: Any, move: Any, table: dict) -> None:
    assert machine.state is state
    following = table[state].get(move)
    if following is None:
        with pytest.raises(LocalError):
            machine._move(move)
        assert machine.state is state
    else:
        machine._move(move)
        assert machine.state is following


@pytest.mark.parametrize("module", [sender, receiver])
def test_nothing_but_a_move_changes_the_state(module: ModuleType) -> None:
    tree = ast.parse(inspect.getsource(module))
    setting = {
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and sets(function)
    }
    assert setting == {"__init__", "_move"}


def sets(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == "_state" and isinstance(node.ctx, ast.Store)
        for node in ast.walk(function)
    )


# Every row is needed: something that can happen makes each move ------------------------------------------------------


def sender_moves() -> Iterator[tuple[Sender, Callable[[Sender], Any]]]:
    old = Outgoing(Quality.HIGH_QUALITY, 5, Kept(receiver=RECEIVER, first_whole_at=-1e6))
    yield Sender(KEY, SenderSettings()), lambda s: s.send(old, 0.0)
    for make in (asking, approving, connecting, sending, confirming, broken_off):
        yield make(), lambda s: s.on_time(15.0)
    for make in (approving, connecting, sending):
        yield make(), lambda s: s.failed(0.0)
    yield sending(UNCERTAIN), lambda s: s.failed(0.0)
    for make in (sending, confirming, broken_off):
        yield make(), lambda s: s.ended(SUCCESS, RECEIVER, 0.0)
        yield make(), lambda s: s.ended(FAILURE, RECEIVER, 0.0)
    yield sending(UNCERTAIN), lambda s: s.sent(0.0)
    yield paused(), lambda s: s.on_time(2.0)


def session_moves() -> Iterator[tuple[ReceiverSession, Callable[[ReceiverSession], Any]]]:
    for make in (offered, chosen):
        yield make(), lambda s: s.lost(0.0)
        yield make(), lambda s: s.on_time(15.0)
    yield chosen(), lambda s: s.receive(data_msg(key=KEY + 1), 0.0)
    yield inserting(), lambda s: s.inserted(Insertion.STORED)


def rows(table: dict) -> set[tuple[Any, Any]]:
    return {(state, move) for state, moves in table.items() for move in moves}


def test_every_row_of_the_tables_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, moves, table in (
        (Sender, sender_moves, SENDER_TRANSITIONS),
        (ReceiverSession, session_moves, RECEIVER_TRANSITIONS),
    ):
        used: set[tuple[Any, Any]] = set()
        real = kind._move

        def noting(self: Any, move: Any, real: Any = real, used: set = used) -> None:
            used.add((self.state, move))
            real(self, move)

        monkeypatch.setattr(kind, "_move", noting)
        for machine, step in moves():
            step(machine)
        assert used == rows(table)


@pytest.mark.parametrize(
    ("name", "table"), [("sender", SENDER_TRANSITIONS), ("receiver", RECEIVER_TRANSITIONS)]
)
def test_the_spec_shows_the_table(name: str, table: dict) -> None:
    found = re.search(
        rf"<!-- {name}: [^\n]*-->\n```mermaid\n(.*?)```\n<!-- end -->", SPEC.read_text(), re.DOTALL
    )
    assert found is not None
    assert found[1] == mermaid(table)


@pytest.mark.parametrize(("section", "labels"), [("3.2", Unanswered), ("4.5", Why)])
def test_the_spec_lists_every_reason(section: str, labels: type[enum.Enum]) -> None:
    rest = SPEC.read_text().split(f"\n{section} ")[1]
    table = rest[rest.index("\n| reason |") :].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [label.value for label in labels]


def test_the_spec_says_what_is_not_heard() -> None:
    for label in Unheard:
        assert f"`{label.value}`" in SPEC.read_text()

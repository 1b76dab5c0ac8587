"""The tables of moves drive the code, and the spec shows them (rqp_cast.md 4, 5)."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator
from pathlib import Path
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
    ReceiverSession,
    Sender,
    SenderSettings,
    Unanswered,
    Unheard,
    Why,
)
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


# Every row is needed: some event makes each move ----------------------------------------------------------------------


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


class Noting(dict[Any, Any]):
    """The moves from one state; it records each that a machine looks up."""

    def __init__(self, state: enum.Enum, moves: dict[Any, Any], used: set[tuple[Any, Any]]) -> None:
        super().__init__(moves)
        self._state, self._used = state, used

    def get(self, move: Any, default: Any = None) -> Any:
        self._used.add((self._state, move))
        return super().get(move, default)


def test_every_row_of_the_tables_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for moves, table in ((sender_moves, SENDER_TRANSITIONS), (session_moves, RECEIVER_TRANSITIONS)):
        wanted, used = rows(table), set[tuple[Any, Any]]()
        for state in table:
            monkeypatch.setitem(table, state, Noting(state, table[state], used))
        for machine, step in moves():
            step(machine)
        assert used == wanted


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


def test_spec_lists_all_labels_of_refusals() -> None:
    for label in Unheard:
        assert f"`{label.value}`" in SPEC.read_text()

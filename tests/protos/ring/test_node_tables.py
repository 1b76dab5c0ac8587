"""The tables of moves drive the node, and the spec shows them (ring.md 3.7, 4.9)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from protos.diagrams import mermaid
from protos.ring import ELECTION, HEAD, TAIL, HeadState, Leader, Node, TailState
from protos.ring.table import Machine
from protos.types import LocalError
from tests.protos.ring.node_samples import (
    BROKEN_OTHER,
    FIND_OTHER,
    HIGH,
    TIMES,
    dialling,
    followed,
    hear,
    in_ring,
    leading,
    linked,
    new,
    opened_by,
    proving,
    started,
    tried,
)

SPEC = Path(__file__).parents[3] / "protos" / "ring.md"
TABLES: dict[str, dict[Any, dict[Any, Any]]] = {"tail": TAIL, "head": HEAD, "leader": ELECTION}
Row = tuple[Enum, Enum]


def steps() -> Iterator[tuple[Node, Callable[[Node], Any]]]:
    """Return the events that cause each move of each table."""
    yield new(), lambda node: node.store_back(0.0)
    for make in (started, tried, followed, leading):
        yield make(), lambda node: node.store_away("refuses", 0.0)
    for outbound in (dialling, proving, linked):
        yield outbound(started()), lambda node: node.store_away("refuses", 0.0)
    yield started(), lambda node: node.accepted(1, 0.0)
    yield tried(), lambda node: node.accepted(2, 0.0)
    yield tried(), lambda node: node.heard(1, 0.0)
    for make in (tried, followed):
        yield make(), lambda node: node.inbound_lost(1, "closed", 0.0)
    yield started(), lambda node: node.beacon(opened_by(HIGH, HIGH), 0.0)
    yield dialling(started()), lambda node: node.connected(0.0)
    yield dialling(started()), lambda node: node.connect_failed(0.0)
    yield proving(started()), lambda node: node.acknowledged(0.0)
    yield proving(started()), lambda node: node.outbound_lost("closed", 0.0)
    yield linked(started()), lambda node: node.outbound_lost("closed", 0.0)
    yield in_ring(), lambda node: hear(node, Leader(node.name))
    yield leading(), lambda node: hear(node, Leader(HIGH))
    yield leading(), lambda node: hear(node, BROKEN_OTHER)
    yield leading(), lambda node: node.beacon(FIND_OTHER, 0.0)
    yield leading(), lambda node: node.election.on_time(TIMES.hung_s)


def test_every_move_is_reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    made: set[Row] = set()
    real = Machine.move

    def noting(self: Machine[Any, Any], move: Any) -> None:
        made.add((self.state, move))
        real(self, move)

    prepared = list(steps())  # the events that lead to the state are not checked
    monkeypatch.setattr(Machine, "move", noting)
    for node, step in prepared:
        step(node)
    assert made == {(state, move) for table in TABLES.values() for state in table for move in table[state]}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_machine_makes_only_moves_of_its_table(table: dict[Any, dict[Any, Any]]) -> None:
    moves = type(next(iter(next(iter(table.values())))))
    for state in table:
        for move in moves:
            machine = Machine(table)
            machine.state = state
            assert machine.may(move) is (move in table[state])
            if move in table[state]:
                machine.move(move)
                assert machine.state is table[state][move]
            else:
                with pytest.raises(LocalError):
                    machine.move(move)
                assert machine.state is state


def test_every_state_is_in_its_table_and_a_node_begins_in_the_first() -> None:
    for table in TABLES.values():
        assert set(table) == set(type(next(iter(table))))
    assert new().tail.state is TailState.AWAY
    assert new().head.state is HeadState.AWAY
    assert not new().election.is_leader


@pytest.mark.parametrize(("name", "table"), TABLES.items())
def test_the_spec_shows_the_tables(name: str, table: dict[Any, dict[Any, Any]]) -> None:
    found = re.search(rf"<!-- {name} diagram -->\n(.*?)<!-- end of diagram -->", SPEC.read_text(), re.DOTALL)
    assert found is not None
    assert found[1] == f"```mermaid\n{mermaid(table)}```\n"


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_diagram_labels_hold_no_special_characters(table: dict[Any, dict[Any, Any]]) -> None:
    for moves in table.values():
        assert not [move for move in moves if set(move.value) & set(":;")]

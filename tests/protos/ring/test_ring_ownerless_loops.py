"""Test that circulating LOOPs are distinguished from those that are sent again (ring.md 2.3)."""

from __future__ import annotations

import pytest

from protos.ring import Leader, LinkBroken
from protos.ring.ownerless_loops import GONE_AT, MAX_LOOPS, SUSPECT_AT, CirculationDetector

NAME, OTHER = b"m:1", b"x:1"


def passes(ttls: list[int], gap: float = 0.1) -> list[int]:
    circling = CirculationDetector()
    return [circling.count(Leader(NAME, ttl), number * gap) for number, ttl in enumerate(ttls)]


def test_equal_ttl_steps_are_laps() -> None:
    assert passes([250, 242, 234, 226]) == [1, 2, 3, GONE_AT]


def test_first_ttl_step_may_be_longer() -> None:
    assert passes([65000, 242, 234, 226, 218]) == [1, 2, 2, 3, GONE_AT]


@pytest.mark.parametrize("ttls", [[250, 250, 250, 250], [250, 251, 252, 253], [250, 245, 250, 245, 250]])
def test_resent_loop_is_not_circulating(ttls: list[int]) -> None:
    assert max(passes(ttls)) <= 2


def test_loops_of_several_nodes_are_not_circulating() -> None:
    assert max(passes([60, 57, 55, 50, 49])) <= 2


def test_late_loop_is_not_circulating() -> None:
    assert passes([250, 242, 234, 226], gap=11.0) == [1, 1, 1, 1]


def test_removed_loop_is_forgotten() -> None:
    assert passes([250, 242, 234, 226, 218]) == [1, 2, 3, GONE_AT, 1]


def test_loop_with_ttl_1_is_taken_off() -> None:
    assert passes([1]) == [GONE_AT]


def test_loops_are_counted_separately() -> None:
    circling = CirculationDetector()
    for number, ttl in enumerate([250, 242, 234]):
        for loop in (Leader(NAME, ttl), Leader(OTHER, ttl), LinkBroken(NAME, ttl)):
            assert circling.count(loop, number / 10) == number + 1


def test_at_most_a_thousand_loops_are_remembered() -> None:
    """Check that at most a thousand LOOPs are remembered, for a predecessor that invents names (2.3)."""
    circling = CirculationDetector()
    for ttl in (250, 242):
        for number in range(MAX_LOOPS):
            circling.count(Leader(b"%d:1" % number, ttl), 0.0)
    assert circling.count(Leader(b"0:1", 234), 1.0) == SUSPECT_AT
    for number in range(MAX_LOOPS, 3 * MAX_LOOPS):
        assert circling.count(Leader(b"%d:1" % number, 250), 1.0) == 1
    assert circling.count(Leader(b"0:1", 226), 1.0) == 1
    assert circling.count(Leader(b"%d:1" % (3 * MAX_LOOPS - 1), 242), 1.0) == 2

"""Tests of the checker: with a rule removed, or replaced by one of the originals', some seed fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from protos.ring import Frame, Operation, Times
from protos.ring.election import Election
from protos.ring.head import Head
from protos.ring.messages import Open
from protos.ring.ownerless_loops import CirculationDetector
from protos.ring.tail import Tail
from tests.ring.simulation.ours import Ours
from tests.ring.simulation.plan import plan_of
from tests.ring.simulation.store import Store
from tests.ring.simulation.trial import run

SEEDS = 120  # at most: the first failing seed is enough
NEVER_S = 1e9
MIXED = [seed for seed in range(400) if plan_of(seed).originals][:SEEDS]


def beginning(likely: int, number: int) -> list[int]:
    """Return all seeds below `number`, beginning at the one that failed when this test was written."""
    return [*range(likely, number), *range(likely)]


def first_wrong(seeds: Iterator[int] | range | list[int], text: str, **options: Any) -> str:
    """Return the first seed's violation of this kind; '' if no seed has one."""
    for seed in seeds:
        for wrong in run(plan_of(seed), **options).wrong:
            if text in wrong:
                return f"seed {seed}: {wrong}"
    return ""


# Building and leading ------------------------------------------------------------------------------------------------


def test_upper_bound_of_120_s_leaves_chains_open(monkeypatch: pytest.MonkeyPatch) -> None:  # ring.md 3.6 b
    real = Head.heard

    def bounded(self: Head, beacon: Open, my_leader: bytes, now: float) -> None:
        waited = now - (self.waiting_since or now)
        if beacon.leader != my_leader or beacon.node == self._me or waited < Times().self_s:
            real(self, beacon, my_leader, now)

    monkeypatch.setattr(Head, "heard", bounded)
    always(monkeypatch, Tail, "_announce_again", _with_my_leader_only)
    assert first_wrong(beginning(79, SEEDS), "not settled", times=Times(vain_s=NEVER_S, lost_s=NEVER_S))


def always(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, make: Callable[[Any], Any]) -> None:
    monkeypatch.setattr(owner, name, make(getattr(owner, name)))


def _with_my_leader_only(real: Callable[[Tail, float], None]) -> Callable[[Tail, float], None]:
    def announce(self: Tail, now: float) -> None:
        self._was_in_vain = True  # always the one before
        real(self, now)

    return announce


@pytest.mark.parametrize(
    "times", [Times(vacant_s=NEVER_S, lost_s=NEVER_S), Times(absent_s=0.0)], ids=["vacant", "absent"]
)
def test_rings_with_originals_need_the_rules_of_4_6(times: Times) -> None:
    assert first_wrong(MIXED, "not settled", times=times)


def test_names_of_dead_nodes_depose_leaders(monkeypatch: pytest.MonkeyPatch) -> None:  # ring.md 2.3
    monkeypatch.setattr(CirculationDetector, "count", lambda self, loop, now: 1)
    assert first_wrong(MIXED, "not settled")


def test_forwarding_a_lesser_proposal_makes_two_leaders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # 4.2
    real = Election.proposed

    def lenient(self: Election, message: Any, now: float) -> None:
        if message.name < self._me:
            self._action_queue.forward(message)
        else:
            real(self, message, now)

    monkeypatch.setattr(Election, "proposed", lenient)
    assert first_wrong(range(SEEDS), "not settled")


def test_ack_time_below_the_round_trip_breaks_rings() -> None:  # 1.4
    assert first_wrong(range(SEEDS), "not settled", times=Times(ack_s=0.15))


# USERs ---------------------------------------------------------------------------------------------------------------


def test_store_without_request_ids_applies_a_push_twice() -> None:  # ring.md 5.4
    assert first_wrong(beginning(24, 4 * SEEDS), "times", keeps_ids=False)


def test_spurious_ok_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:  # ring.md 5.4
    def promise(self: Store, request: Frame) -> Frame:
        return Frame(Operation.OK, request.sender, request.queue, b"", request.request_id)

    monkeypatch.setattr(Store, "carry_out", promise)
    assert first_wrong(range(SEEDS), "answered by OK and not applied")


def test_messages_that_are_not_resent_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:  # ring.md 2.2
    real = Ours.give_back

    def forget(self: Ours) -> None:
        for _ in range(self._users_sent):
            self.disk.outgoing.popleft()
        real(self)

    monkeypatch.setattr(Ours, "give_back", forget)
    assert first_wrong(range(4 * SEEDS), "is lost")


def test_in_memory_queue_loses_messages(monkeypatch: pytest.MonkeyPatch) -> None:  # ring.md 2.2, 4.5
    real = Ours.start

    def start(self: Ours) -> None:
        self.disk.outgoing.clear()
        real(self)

    monkeypatch.setattr(Ours, "start", start)
    assert first_wrong(range(4 * SEEDS), "is lost")


def test_without_max_laps_messages_of_dead_nodes_circulate_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # 5.5
    from protos.ring import Relay

    real = Ours.__init__

    def without(self: Ours, *args: Any) -> None:
        real(self, *args)
        self.routing.relay = self.relay = Relay(self.name, max_laps=0, remembered=1000)

    monkeypatch.setattr(Ours, "__init__", without)
    assert first_wrong(MIXED, "USERs wait")


def test_lost_empty_payload_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:  # 2.4
    from protos.ring import Questions

    monkeypatch.setattr(Questions, "with_between", lambda self, payload: [payload] if payload else [])
    assert first_wrong(range(SEEDS), " never came to ")

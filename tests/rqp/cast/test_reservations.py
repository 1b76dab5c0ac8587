"""Reservations end with their session at a receiving agent (rqp_cast.md 3.2)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.rqp.cast.receiving.claim_connections import ClaimConnections
from services.rqp.cast.receiving.insertion import Reservation
from services.store.pipeline.claims import Asked, Claims
from tests.live import until
from tests.rqp.cast.hands import HandSender
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import agent, is_reserved, keyed

TTL_S = 0.6


class Held:
    """Reservations whose answers from the store are delayed until `may_go`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        self.may_go = asyncio.Event()
        reserve = Claims.reserve

        async def late(*args: Any) -> Any:
            answer = await reserve(*args)
            self.made += 1
            await self.may_go.wait()
            return answer

        monkeypatch.setattr(Claims, "reserve", late)


async def test_reservation_is_released_if_the_edge_ends_before_the_answer(
    machines: Machines, hands: HandSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    edge = await machines.receiver()
    queue = await keyed(edge)
    held = Held(monkeypatch)
    hands.ask()
    await until(lambda: held.made == 1)
    assert await is_reserved(edge, queue)
    questions = agent(edge).questions
    assert questions is not None
    await questions.close()
    assert not await is_reserved(edge, queue)


async def test_released_reservation_is_not_renewed(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    edge = await machines.receiver()
    queue = await keyed(edge)
    lanes = ClaimConnections(edge.service)
    reservation = Reservation(lanes, queue, "ours", TTL_S, "127.0.0.1")
    await reservation.make(Asked("127.0.0.1", 0, "ours"))
    held = Held(monkeypatch)
    await until(lambda: held.made == 1)
    freeing = asyncio.create_task(reservation.free())
    await until(lambda: reservation.is_freed)
    held.may_go.set()
    await freeing
    await asyncio.sleep(TTL_S)  # three times as long as until a renewal
    assert held.made == 1
    assert not await is_reserved(edge, queue)
    await lanes.close()

"""Outbox messages go around once without faults, also while the node forwards others (ring.md 4.5, 5.5)."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from services.ring.node.counts import UserOutcome
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Ring, Start
from tests.ring.users.test_marks import INBOX, OUTBOX
from tests.ring.users.test_requests import stores

TURNS = 40
AT_ONCE = 5


@pytest.mark.parametrize(("others", "window"), [(0, 64), (3, 1)])
async def test_outbox_messages_come_back_once(
    start: Start, new_server: NewServer, others: int, window: int
) -> None:
    """Check that outbox messages return once while the node forwards pushes of `others` and sends marks."""
    first, inbox, other = nodes = await stores(start, new_server, 3, forward_user=True)
    await first.declare("out", bindings=OUTBOX)
    await inbox.declare("in", bindings=INBOX)
    await inbox.declare("orders")
    await until(lambda: first.users.bindings.outbox and inbox.users.bindings.inbox)
    ring = Ring(nodes, window)
    is_over = False

    async def push() -> None:
        while not is_over:
            assert await other.push(b"orders", b"one") is None

    pushing = [asyncio.create_task(push()) for _ in range(others)]
    put = [[b"%d.%d" % (turn, n) for n in range(AT_ONCE)] for turn in range(TURNS)]
    for bodies in put:
        await first.put("out", *bodies)
        await other.push(b"orders", b"one more")
    is_over = True
    await asyncio.gather(*pushing)
    await until(lambda: first.count(UserOutcome.TAKEN_OFF) >= TURNS * AT_ONCE)
    await ring.settle_down()
    assert first.count(UserOutcome.BEGUN) == first.count(UserOutcome.TAKEN_OFF) == TURNS * AT_ONCE
    assert Counter(await inbox.bodies("in")) == Counter(body for bodies in put for body in bodies)

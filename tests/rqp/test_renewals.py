"""Leases outlive one lost renewal: it is repeated in time, on another connection."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import ValidationError

from services.kit.config.settings import GlobalSettings
from services.rqp.edge import EDGE
from services.rqp.settings import OutboxSettings
from services.store import Queue
from tests.live import until
from tests.proxy import Proxy
from tests.rqp.cast.hands import HandSender
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, THERE, keyed, remote
from tests.rqp.live import LiveEdge
from tests.servers import Server

LEASE_S = 3.0


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with Proxy(server.port) as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("lease_s", "renew_s", "why"),
    [
        (8.0, 3.0, r"renew_s \(3\) must be at most a third of lease_s \(8\): raise lease_s to 9"),
        (60.0, 6.0, "must be at most 5, regardless of lease_s"),
    ],
)
def test_too_long_renewal_interval_is_rejected(lease_s: float, renew_s: float, why: str) -> None:
    """Check that a renewal interval above 5 s is rejected, also for a long lease.

    A lease must survive so long after a step of the store's clock.
    """
    with pytest.raises(ValidationError, match=why):
        OutboxSettings(lease_s=lease_s, renew_s=renew_s)
    OutboxSettings(lease_s=9.0, renew_s=3.0)


@pytest.mark.parametrize(
    ("given", "both"),
    [
        ({}, (10.0, 3.0)),
        ({"lease_s": 8}, (8.0, 8 / 3)),
        ({"lease_s": 60}, (60.0, 3.0)),
        ({"renew_s": 5}, (15.0, 5.0)),
        ({"renew_s": 1}, (10.0, 1.0)),
    ],
)
def test_unset_time_is_derived(given: dict[str, float], both: tuple[float, float]) -> None:
    outbox = GlobalSettings(edges={"rqp": {"outbox": given}}).edge(EDGE).outbox
    assert (outbox.lease_s, outbox.renew_s) == both


async def lose_one(proxy: Proxy, function: bytes) -> None:
    """Block one call of that function forever."""
    proxy.keep(function)
    await until(lambda: proxy.held)
    proxy.kept = None


async def end_of(edge: LiveEdge, queue: Queue, field: str) -> int:
    return int(await edge.tools.get_domain(queue.domain).link.call("HGET", queue.keys[1], field))


async def fence_once_renewed(edge: LiveEdge, queue: Queue, prefix: str) -> int:
    """Return the fence of the claim after a renewal; a claim that expired meanwhile gets another one."""
    before = await end_of(edge, queue, f"{prefix}until")

    async def is_renewed() -> bool:
        return await end_of(edge, queue, f"{prefix}until") > before

    await until(is_renewed)
    return await end_of(edge, queue, f"{prefix}fence")


async def test_reservation_outlives_a_lost_renewal(
    proxy: Proxy, machines: Machines, hands: HandSender
) -> None:
    """Check that a reservation outlives a lost renewal (rqp_cast.md 3.2)."""
    cast = machines.net.machine(THERE, sends=False, reservation_s=LEASE_S, t_wait2_s=600.0)
    edge = await LiveEdge(proxy.url, cast=cast).start()
    try:
        queue = await keyed(edge)
        await hands.asked()
        await lose_one(proxy, b"ps1_reserve")
        assert await fence_once_renewed(edge, queue, "") == 1
    finally:
        await edge.close()


async def test_ownership_outlives_a_lost_renewal(proxy: Proxy, machines: Machines) -> None:
    """Check that ownership outlives a lost renewal (docs/rqp-mca.md, How it works)."""
    cast = machines.net.machine(HERE, THERE, receives=False)
    outbox = {"lease_s": LEASE_S, "renew_s": LEASE_S / 3}
    edge = await LiveEdge(proxy.url, cast=cast, outbox=outbox).start()
    try:
        queue = await remote(edge)
        await until(lambda: edge.value("penstock_rqp_owned_queues", protocol="rqp-cast"))
        await lose_one(proxy, b"ps1_own")
        assert await fence_once_renewed(edge, queue, "own_") == 1
        assert not edge.log.events("rqp_lost")
    finally:
        await edge.close()

"""Random faults: broken links, restarted nodes, killed stores (ring.md 2.2, 5.4).

Each acknowledged push is in a queue once, no push is there twice, and every message of the outbox reaches every inbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter

import pytest

from services.ring.remote_queues import NotDone
from tests.live import until
from tests.ring.users.members import Link, Member, Ring, Start
from tests.servers import Server
from tests.stores import NewServer

STORES = 3
TURNS = 20
TIMES = 2


class World:
    """Three nodes with a store each; the last one serves the queue `orders`, all have an inbox."""

    def __init__(self, start: Start, servers: list[Server], chance: random.Random) -> None:
        self.random = chance
        self.start = start
        self.servers = servers
        self.members: list[Member] = []
        self.links: list[Link] = []
        self.pushed: Counter[bytes] = Counter()  # acknowledged pushes
        self.tried: list[bytes] = []
        self.asked: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        for place in range(STORES):
            self.members.append(await self._member(place))
            await self.members[place].declare("in", bindings={"ring": {"inbox": 1}})
        await self.members[-1].declare("orders")
        await self.members[0].declare("out", bindings={"ring": {"outbox": 1}})
        for member in self.members:
            await until(lambda member=member: member.users.bindings.inbox)  # type: ignore[misc]
        self.links = Ring(self.members, window=6).links

    async def _member(self, place: int) -> Member:
        return await self.start(
            self.servers[place], b"node:%d" % place, forward_user=True, timeout_s=3.0, max_laps=3
        )

    def ask(self, number: int) -> None:
        body = b"push %d" % number
        self.tried.append(body)
        task = asyncio.ensure_future(self._push(body))
        self.asked.add(task)
        task.add_done_callback(self.asked.discard)

    async def _push(self, body: bytes) -> None:
        answer = await self.members[self.random.randrange(2)].push(b"orders", body)
        if not isinstance(answer, NotDone):
            self.pushed[body] += 1

    async def trouble(self) -> None:
        place = self.random.randrange(STORES)
        match self.random.randrange(4):
            case 0 | 1:
                self.links[place].cut(lost=self.random.randrange(6))
                await asyncio.sleep(self.random.random() / 20)
                self.links[place].mend()
            case 2:
                await self._restart(place)
            case 3:
                self.servers[place].kill9()
                for link in (self.links[place], self.links[place - 1]):
                    link.cut(lost=self.random.randrange(6))  # 4.7
                self.servers[place].restart()
                member = self.members[place]
                await until(lambda: member.store.fault_of() is None)
                for link in (self.links[place], self.links[place - 1]):
                    link.mend()

    async def _restart(self, place: int) -> None:
        out, back = self.links[place], self.links[place - 1]
        out.cut(lost=self.random.randrange(6))
        back.cut(lost=self.random.randrange(6))
        await self.members[place].close()
        self.members[place] = await self._member(place)
        self.links[place] = Link(self.members[place], out.goal, out.window)
        self.links[place].pump()
        back.mend(self.members[place])

    async def describe_missing(self, put: list[bytes]) -> str:
        """Return a description of missing messages by place."""
        lines = []
        for member in self.members:
            missing = sorted(set(put) - set(await member.bodies("in")))
            waits = await member.stats(member.users.queue_name)
            lines.append(
                f"{member.name!r} misses {missing}; {waits['ready']} + {waits['in_flight']} wait, "
                f"{dict(member.users.counts.now)}, trouble {member.users.readiness.unready()}"
            )
        with contextlib.suppress(Exception):
            lines.append(f"outbox: {await self.members[0].stats('out')}")
        return "\n".join(lines)


@pytest.mark.parametrize("time", range(TIMES))
@pytest.mark.timeout(280)
async def test_no_fault_loses_or_repeats_requests(
    start: Start, new_server: NewServer, chance: random.Random, time: int
) -> None:
    world = World(start, [await new_server() for _ in range(STORES)], chance)
    await world.begin()
    put: list[bytes] = []
    for turn in range(TURNS):
        for number in range(4):
            world.ask(turn * 4 + number)
        bodies = [b"user %d" % (turn * 5 + number) for number in range(5)]
        with contextlib.suppress(Exception):
            await world.members[0].put("out", *bodies)
            put += bodies
        await asyncio.sleep(world.random.random() / 20)
        if turn % 2:
            await world.trouble()
    await asyncio.gather(*world.asked)

    async def came_everywhere() -> bool:
        inboxes = [set(await member.bodies("in")) for member in world.members[1:]]
        return all(set(put) <= inbox for inbox in inboxes)

    try:
        await until(came_everywhere, 60)
    except AssertionError:
        raise AssertionError(await world.describe_missing(put)) from None
    found = Counter(await world.members[-1].bodies("orders"))
    assert world.pushed, "no push succeeded"
    assert set(world.pushed) <= set(found), "an acknowledged push is lost"
    assert set(found.values()) == {1}, "a push was done twice"
    assert set(found) <= set(world.tried)

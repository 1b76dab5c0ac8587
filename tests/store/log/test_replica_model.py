"""Random entries from links and local sends, compared with plain sets (pubsub.md 4.3, 4.4, 4.5).

After every step each held number is in the log once, or gone; queues have a copy of each new line.

PENSTOCK_MODEL_EXAMPLES sets the number of examples, PENSTOCK_MODEL_SEED their seed; a failure prints both.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections import defaultdict
from collections.abc import Coroutine
from typing import Any

import uvloop
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from services.store.log.log import LogSpec
from services.store.log.replica import Arrived, Gap, Held, Origin
from services.store.model import records
from services.store.model.intervals import Intervals
from tests.servers import Server
from tests.store.desk import Desk
from tests.store.logbook import Logbook, arrived, check_places, own
from tests.stores import every_server

EXAMPLES = int(os.environ.get("PENSTOCK_MODEL_EXAMPLES", "10"))
SEED = int(os.environ.get("PENSTOCK_MODEL_SEED", secrets.randbits(32)))
STEPS = 30

spans = st.tuples(st.integers(1, 30), st.integers(0, 8)).map(lambda s: (s[0], s[0] + s[1]))
origins = st.integers(0, 3)  # two neighbours, and this store's previous and current incarnations
items = st.lists(st.tuples(st.sampled_from("eeeg"), origins, spans), min_size=1, max_size=6)


class Model:
    """The numbers held and gone (trimmed or never received) as sets, and the log as a list."""

    def __init__(self, store: bytes, incarnation: bytes) -> None:
        self.me: Origin = (store, incarnation)
        self.held: dict[Origin, set[int]] = defaultdict(set)
        self.gone: dict[Origin, set[int]] = defaultdict(set)
        self.log: list[tuple[Origin, int]] = []
        self.missing = 0

    def ends(self, origin: Origin, last: int) -> bool:
        """Return whether these numbers were never given out, so that the incarnation ends."""
        return origin == self.me and last > len(self.held[self.me])

    def accept(self, origin: Origin, first: int, last: int) -> list[int]:
        """Return the new numbers."""
        new = [n for n in range(first, last + 1) if n not in self.held[origin]]
        self.held[origin].update(new)
        self.missing -= len(self.gone[origin].intersection(new))
        self.gone[origin].difference_update(new)
        self.log += [(origin, n) for n in new]
        return new

    def gap(self, origin: Origin, first: int, last: int) -> int:
        new = set(range(first, last + 1)) - self.held[origin] - self.gone[origin]
        self.gone[origin] |= new
        self.missing += len(new)
        return len(new)

    def send(self, count: int) -> None:
        given = len(self.held[self.me])
        self.accept(self.me, given + 1, given + count)

    def trim(self, count: int) -> None:
        for origin, number in self.log[:count]:
            self.gone[origin].add(number)
        del self.log[:count]


def intervals(sets: dict[Origin, set[int]]) -> Held:
    return {origin: Intervals.of((n, n) for n in numbers) for origin, numbers in sets.items() if numbers}


def line(origin: Origin, number: int) -> bytes:
    return b"t %b %b %d" % (*origin, number)


class ReplicaMachine(RuleBasedStateMachine):
    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server = server
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @initialize()
    def set_up(self) -> None:
        self.server.clear()
        self.run(self.begin())

    async def begin(self) -> None:
        self.desk = await Desk(self.server).__aenter__()
        self.book = Logbook(self.desk)
        await self.book.log.declare()
        self.queue = await self.book.bound("bound", "t")
        self.model = Model(*own(await self.book.state()))
        self.before: Origin = (self.model.me[0], b"before")
        self.copies: list[bytes] = []
        self.serial = 0

    def origin(self, number: int) -> Origin:
        return ((b"one", b"i"), (b"two", b"i"), self.before, self.model.me)[number]

    # actions

    @rule(some=items)
    def accept(self, some: list[tuple[str, int, tuple[int, int]]]) -> None:
        """One call of several runs and gaps, perhaps with repeated numbers."""
        asked: list[Arrived | Gap] = []
        taken = missing = 0
        names = [self.origin(number) for _, number, _ in some]
        for (kind, _, (first, last)), origin in zip(some, names, strict=True):
            if self.model.ends(origin, last):
                self.become_another()
            if kind == "g":
                asked.append(Gap(*origin, first, last))
                missing += self.model.gap(origin, first, last) if origin != self.model.me else 0
            else:
                asked.append(self.lines(origin, first, last))
                new = self.model.accept(origin, first, last)
                self.copies += [line(origin, n) for n in new]
                taken += len(new)
        assert self.run(self.book.accept(*asked)) == (taken, missing)
        self.look_who_we_are()

    def lines(self, origin: Origin, first: int, last: int) -> Arrived:
        """Accept runs with a copy of each line for the queue."""
        made = [line(origin, n) for n in range(first, last + 1)]
        copies = [(i, self.queue, records.encode(body)) for i, body in enumerate(made)]
        return arrived(origin, first, *made, copies=copies)

    def become_another(self) -> None:
        """Switch to a new incarnation, whose name the store chooses."""
        self.before, self.model.me = self.model.me, (self.model.me[0], b"")

    def look_who_we_are(self) -> None:
        me = own(self.run(self.book.state()))
        if self.model.me[1] == b"":
            assert me not in self.model.held
            self.model.me = me
        assert me == self.model.me

    @rule(count=st.integers(1, 5))
    def send(self, count: int) -> None:
        given = len(self.model.held[self.model.me])
        self.run(self.book.send(*(line(self.model.me, n) for n in range(given + 1, given + count + 1))))
        self.model.send(count)

    @rule()
    def restart(self) -> None:
        """Let another server continue with this data."""
        self.server.call("HSET", self.book.log.keys.log[1], "server", "another")
        self.become_another()
        self.look_who_we_are()

    @rule(room=st.integers(0, 2000))
    def trim(self, room: int) -> None:
        self.book.log.spec = LogSpec(max_bytes=room)
        self.run(self.book.log.declare())
        self.model.trim(self.run(self.book.log.trim()))

    # invariants

    @invariant()
    def the_log_is_as_the_model(self) -> None:
        self.run(self.check())

    async def check(self) -> None:
        state, entries = await self.book.state(), await self.book.entries()
        assert state.held == intervals(self.model.held)
        assert state.gone == intervals(self.model.gone)
        found = [(*origin_of(e.origin), e.first + i) for e in entries for i in range(e.messages)]
        assert found == [(*origin, number) for origin, number in self.model.log]
        assert await self.book.lines() == [line(*entry) for entry in self.model.log]
        assert await self.book.counter("gaps") == self.model.missing
        check_places(entries, state.trimmed.serial)
        assert await self.desk.drain(self.queue) == self.copies
        self.copies.clear()

    def teardown(self) -> None:
        try:
            if hasattr(self, "book"):
                self.run(self.book.log.close())
                self.run(self.desk.close())
        finally:
            self.runner.close()


def origin_of(text: bytes) -> Origin:
    store, _, incarnation = text.partition(b" ")
    return store, incarnation


@every_server
def test_store_matches_the_model(server: Server) -> None:
    print(f"PENSTOCK_MODEL_SEED={SEED} PENSTOCK_MODEL_EXAMPLES={EXAMPLES}")
    run_state_machine_as_test(
        seed(SEED)(lambda: ReplicaMachine(server)),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
            database=None,
        ),
    )

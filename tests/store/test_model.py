"""Random work of several sessions on several queues against the plain model (model.py).

Everything a session asks for in one call is done in sequence; a call made again answers the same and does nothing;
only the holder of a message settles it; the dead give everything back. After every step each message is exactly once
ready, leased, dead or done, in the right order, and all counters are right.

PENSTOCK_MODEL_EXAMPLES sets how long it tries, PENSTOCK_MODEL_SEED what it tries; a failure prints both.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from redis.exceptions import ResponseError

from services.store import Delivery, Part, Queue, QueueSpec, records
from services.store.errors import LeaseLost, QueueFull
from services.store.keys import DomainKeys
from tests.servers import Client, Server
from tests.store.desk import bodies, encode
from tests.store.lane import DATASET, Lane, begin
from tests.store.model import ModelQueue

EXAMPLES = int(os.environ.get("PENSTOCK_MODEL_EXAMPLES", "30"))
SEED = int(os.environ.get("PENSTOCK_MODEL_SEED", secrets.randbits(32)))
STEPS = 60
SPECS = (
    QueueSpec(max_deliveries=2),
    QueueSpec(max_deliveries=0),
    QueueSpec(max_length=90),
)
RUNS = (1, 2, 3, 5, 31, 32, 33, 70)
WANTS = (1, 2, 7, 31, 32, 33, 100)
KEYS = ("s", "q", "l", "r", "f", "m", "d", "x")

sessions = st.integers(0, 2)
queues = st.integers(0, len(SPECS) - 1)
randoms = st.integers(0, 1 << 30).map(random.Random)


class Held:
    """A leased message: its delivery, cut to this message alone."""

    def __init__(self, queue: int, delivery: Delivery) -> None:
        self.queue = queue
        self.delivery = delivery
        self.body = bodies([delivery])[0]


class StoreMachine(RuleBasedStateMachine):
    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server = server
        self.client = Client(server.port)

    @initialize()
    def set_up(self) -> None:
        self.keys = DomainKeys("main")
        self.client.call("FLUSHALL", "SYNC")
        self.epoch = DATASET
        self.queues = [Queue(f"queue{i}", f"q{i}", "main", "test", spec) for i, spec in enumerate(SPECS)]
        self.models = [ModelQueue(spec.max_deliveries, spec.max_length) for spec in SPECS]
        begin(self.client, *self.queues)
        self.born = 0
        self.serial = 0
        self.lanes = [self.new_lane() for _ in range(3)]
        self.held: dict[str, dict[bytes, Held]] = {lane.session: {} for lane in self.lanes}
        self.stale: list[tuple[Lane, Held]] = []
        self.gone: list[Lane] = []
        self.last: dict[str, Any] = {}
        self.fenced = [0] * len(SPECS)

    def new_lane(self) -> Lane:
        self.born += 1
        return Lane(self.client, f"session{self.born}", self.epoch)

    def send(self, lane: Lane) -> None:
        self.last[lane.session] = lane.send()

    def fresh(self, rnd: random.Random, count: int) -> list[bytes]:
        """New bodies, each only once in the whole run; sizes differ, some fill an entry."""
        size = rnd.choice((0, 0, 20, 300, 1500))
        made = [b"%d." % (self.serial + i) + b"x" * rnd.randint(0, size) for i in range(count)]
        self.serial += count
        return made

    def pick(self, rnd: random.Random, lane: Lane, queue: int | None = None) -> list[Held]:
        mine = [h for h in self.held[lane.session].values() if queue is None or h.queue == queue]
        if not mine:
            return []
        mine.sort(key=lambda h: h.body)
        return rnd.sample(mine, rnd.choice((1, len(mine), rnd.randint(1, len(mine)))))

    def let_go(self, lane: Lane, chosen: list[Held]) -> None:
        for h in chosen:
            del self.held[lane.session][h.body]
            self.stale.append((lane, h))
        del self.stale[:-200]

    # what is asked for: each adds to the call at hand and does the same to the model

    def ask_publish(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        new = self.fresh(rnd, rnd.choice(RUNS))
        fit = self.models[queue].publish(new)
        expected = [(i, QueueFull) for i in range(fit, len(new))]

        def published(refusals: Any) -> None:
            assert [(index, type(why)) for index, why in refusals] == expected

        lane.publish(lane.source, self.queues[queue], encode(*new), rnd.choice(("a 1", "b 2")), published)

    def ask_take(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        taken = self.models[queue].take(lane.session, rnd.choice(WANTS))
        expected = [(m.body, m.acquired, m.failed) for m in taken]

        def took(deliveries: Any, more: bool) -> None:
            got = [Held(queue, one) for d in deliveries for one in singles(d)]
            assert [(h.body, h.delivery.acquired, h.delivery.failed) for h in got] == expected
            self.held[lane.session].update({h.body: h for h in got})

        # a take of 0 tells nothing; the model was asked for as many as the store will be
        lane.take(lane.source, self.queues[queue], max(1, len(taken)), took)

    def ask_settle(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        chosen = self.pick(rnd, lane, queue)
        if chosen:
            self.let_go(lane, chosen)
            self.models[queue].settle(h.body for h in chosen)
            lane.settle(lane.source, [h.delivery for h in chosen], expect(None))

    def ask_release(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        chosen = self.pick(rnd, lane, queue)
        if chosen:
            self.let_go(lane, chosen)
            failed, to_end = rnd.random() < 0.5, rnd.random() < 0.3
            for h in chosen:
                self.models[queue].give_back(h.body, failed=failed, to_end=to_end)
            lane.release(
                lane.source, [h.delivery for h in chosen], failed=failed, to_end=to_end, done=expect(None)
            )

    def ask_reject(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        chosen = self.pick(rnd, lane, queue)[:5]
        if chosen:
            self.let_go(lane, chosen)
            for h in chosen:
                self.models[queue].reject(h.body)
            lane.reject(lane.source, [h.delivery for h in chosen], "refused", "no", expect(None))

    def ask_count(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        lane.count(lane.source, self.queues[queue], expect(len(self.models[queue].ready)))

    # steps

    @rule(number=sessions, rnd=randoms, steps=st.integers(1, 4))
    def work(self, number: int, rnd: random.Random, steps: int) -> None:
        """Several requests of one connection in one call (tmq.md 1.2)."""
        self.one_call(self.lanes[number], rnd, steps)

    @rule(rnd=randoms, calls=st.integers(2, 12))
    def work_long(self, rnd: random.Random, calls: int) -> None:
        for _ in range(calls):
            self.one_call(rnd.choice(self.lanes), rnd, rnd.randint(1, 3))

    def one_call(self, lane: Lane, rnd: random.Random, steps: int) -> None:
        asks: tuple[Callable[[random.Random, Lane, int], None], ...] = (
            *(self.ask_publish, self.ask_take, self.ask_take, self.ask_settle, self.ask_release),
            *(self.ask_reject, self.ask_count),
        )
        kinds = rnd.choices(asks, (30, 20, 15, 20, 20, 4, 3), k=steps)
        taken: set[int] = set()
        for ask in kinds:
            queue = rnd.randrange(len(SPECS))
            if ask == self.ask_take:
                if queue in taken:
                    continue  # what one call gives out it cannot yet settle: keep the model simple
                taken.add(queue)
            ask(rnd, lane, queue)
        if lane.waiting:
            self.send(lane)

    @rule(number=sessions, rnd=randoms)
    def repeat(self, number: int, rnd: random.Random) -> None:
        """Its reply was lost: the same answer, and nothing happens twice (docs/store.md, Exactly once inside)."""
        lane = self.lanes[number]
        if lane.session in self.last:
            assert lane.again() == self.last[lane.session]

    @rule(number=sessions, rnd=randoms)
    def commit(self, number: int, rnd: random.Random) -> None:
        """Settles and publishes over up to three queues, all or nothing (tmq.md 5.3)."""
        lane = self.lanes[number]
        parts, chosen, new = [], {}, {}
        for queue in rnd.sample(range(len(SPECS)), rnd.randint(1, len(SPECS))):
            chosen[queue] = self.pick(rnd, lane, queue)
            new[queue] = self.fresh(rnd, rnd.choice((0, 1, 33)))
        full = any(
            n and (room := self.models[q].room()) is not None and room + len(chosen[q]) < len(n)
            for q, n in new.items()
        )
        spoilt = self.spoil(rnd, chosen) if rnd.random() < 0.3 else None
        for queue, mine in chosen.items():
            held = [h.delivery for h in mine]
            if spoilt is not None and spoilt.queue == queue:
                held.append(spoilt.delivery)
            parts.append(Part(self.queues[queue], held, encode(*new[queue]), "commit"))
        answers: list[Any] = []
        self.serial += 1
        identifier = f"t{self.serial}"
        lane.commit(lane.source, identifier, parts, answers.append)
        self.send(lane)
        if full or spoilt is not None:
            assert isinstance(answers[0], QueueFull | LeaseLost)
            if isinstance(answers[0], LeaseLost):
                assert spoilt is not None
                self.fenced[spoilt.queue] += 1
            return
        assert answers == [None]
        for queue, mine in chosen.items():
            self.let_go(lane, mine)
            self.models[queue].settle(h.body for h in mine)
            self.models[queue].publish(new[queue])
        if rnd.random() < 0.5:  # under the same identifier once more: done already
            lane.commit(lane.source, identifier, parts, expect(None))
            self.send(lane)

    def spoil(self, rnd: random.Random, chosen: dict[int, list[Held]]) -> Held | None:
        """Something that the committing session does not hold."""
        foreign = [h for _, h in self.stale if h.queue in chosen]
        return rnd.choice(foreign) if foreign else None

    @rule(rnd=randoms, number=sessions)
    def settle_what_is_not_ours(self, rnd: random.Random, number: int) -> None:
        """Late, double and foreign settles are fenced and counted, and do nothing."""
        lane = self.lanes[number]
        foreign = [(lane, h) for s, held in self.held.items() if s != lane.session for h in held.values()]
        late = [(owner, h) for owner, h in self.stale if owner in self.lanes]
        for candidates in (foreign, late):
            if not candidates:
                continue
            owner, h = rnd.choice(candidates)
            how = rnd.randrange(3)
            if how == 0:
                owner.settle(owner.source, [h.delivery], expect(LeaseLost))
            elif how == 1:
                owner.release(owner.source, [h.delivery], failed=True, done=expect(LeaseLost))
            else:
                owner.reject(owner.source, [h.delivery], "refused", "", expect(LeaseLost))
            self.send(owner)
            self.fenced[h.queue] += 1

    @rule(number=sessions)
    def die(self, number: int) -> None:
        """Its process is gone: everything goes back to its place as failed, and it can do nothing any more."""
        lane = self.lanes[number]
        lane.die()
        sweeper = self.lanes[(number + 1) % len(self.lanes)]
        assert sweeper.fence() == [lane.session]
        lane.count(lane.source, self.queues[0], expect(0))
        with pytest.raises(ResponseError, match=r"^SESSION"):
            lane.send()
        back, dead, _ = sweeper.sweep(lane.session, self.queues)
        held = self.held.pop(lane.session)
        before = sum(len(m.dead) for m in self.models)
        for h in held.values():
            self.models[h.queue].give_back(h.body, failed=True, to_end=False)
        assert dead == sum(len(m.dead) for m in self.models) - before
        assert back + dead == len(held)
        self.lanes[number] = self.new_lane()
        self.held[self.lanes[number].session] = {}
        self.stale.extend((lane, h) for h in held.values())

    @rule(queue=queues)
    def redrive(self, queue: int) -> None:
        q, model = self.queues[queue], self.models[queue]
        letters = self.client.call("XRANGE", q.keys[6], "-", "+")
        by_body = {dict(zip(f[::2], f[1::2], strict=True))[b"body"]: i for i, f in letters}
        ids = [by_body[body] for body in model.dead]
        moved, missing, _ = self.lanes[0].function(
            "redrive", [*q.keys, *q.keys], self.keys.wake_channel, *ids
        )
        assert (moved, missing) == (model.redrive(), 0)

    @rule(queue=queues, step=st.sampled_from((2, 500, 500)))
    def tidy(self, queue: int, step: int) -> None:
        """Thins out old entries and counts; the counters were right."""
        q = self.queues[queue]
        counted = self.lanes[0].function("upkeep", q.keys, -1000, step, 0)
        assert counted == [] or counted[:3] == counted[3:]

    @rule()
    def next_generation(self) -> None:
        """Ids go on in another generation: order and leases stay."""
        dataset, _, generation = self.epoch.partition(".")
        newer = f"{dataset}.{int(generation) + 1}"
        self.client.call("FCALL", "ps1_set_epoch", 1, self.keys.epoch, self.epoch, newer)
        self.epoch = newer
        for lane in self.lanes:
            lane.epoch = newer
        self.last.clear()

    # what is always true

    @invariant()
    def contents_and_counters_agree(self) -> None:
        for queue, model, fenced in zip(self.queues, self.models, self.fenced, strict=True):
            flat = self.client.call("HGETALL", queue.keys[1])
            h = {k.decode(): v for k, v in zip(flat[::2], flat[1::2], strict=True)}
            seen = {name: int(h.get(name, 0)) for name in (*COUNTERS, "len", "leased", "bytes", "fenced")}
            expected = {name: model.counts[name] for name in COUNTERS}
            assert seen == {
                **expected,
                "len": len(model),
                "leased": len(model.leased),
                "bytes": model.bytes(),
                "fenced": fenced,
            }
            assert self.client.call("XLEN", queue.keys[6]) == len(model.dead)
            assert self.peeked(queue) == [m.body for m in model.ready[:100]]

    @invariant()
    def lots_are_found_from_their_sessions(self) -> None:
        for queue in self.queues:
            lots = self.client.call("HGETALL", queue.keys[2])
            for number, text in zip(lots[::2], lots[1::2], strict=True):
                session = text.split(b" ")[0].decode()
                member = f"{queue.qid} {number.decode()}"
                assert self.client.call("SISMEMBER", self.keys.lots(session), member)
        for lane in self.lanes:
            for member in self.client.call("SMEMBERS", self.keys.lots(lane.session)):
                qid, number = member.decode().split(" ")
                assert self.client.call("HEXISTS", self.keys.queue(qid)[2], number), member

    def peeked(self, queue: Queue) -> list[bytes]:
        flat = self.client.call("FCALL_RO", "ps1_peek", 8, *queue.keys, 100, 4 << 20)
        return [
            records.decode(r).body
            for i in range(0, len(flat), 8)
            for r in records.split(flat[i + 5], flat[i + 4])
        ]

    def teardown(self) -> None:
        try:
            if hasattr(self, "lanes"):
                self.empty()
        finally:
            self.client.close()

    def empty(self) -> None:
        """Everything out: nothing is left, in any key, but the dead and the counters."""
        for lane in self.lanes:
            for queue, model in enumerate(self.models):
                self.settle_all(lane, queue)
                while model.ready:
                    self.ask_take(random.Random(1), lane, queue)
                    lane.send()
                    self.settle_all(lane, queue)
            assert self.client.call("EXISTS", self.keys.lots(lane.session)) == 0
        self.contents_and_counters_agree()
        for queue in self.queues:
            left = {key: self.client.call("EXISTS", name) for key, name in zip(KEYS, queue.keys, strict=True)}
            assert self.client.call("XLEN", queue.keys[0]) == 0
            assert [key for key in "lrfmx" if left[key]] == []

    def settle_all(self, lane: Lane, queue: int) -> None:
        held = [h for h in self.held[lane.session].values() if h.queue == queue]
        if held:
            self.let_go(lane, held)
            self.models[queue].settle(h.body for h in held)
            lane.settle(lane.source, [h.delivery for h in held], expect(None))
            lane.send()


COUNTERS = ("added", "delivered", "acked", "returned", "dead")


def singles(delivery: Delivery) -> list[Delivery]:
    found = []
    while delivery.count > 1:
        one, delivery = delivery.cut(1)
        found.append(one)
    return [*found, delivery]


def expect(wanted: Any) -> Callable[[Any], None]:
    """An answer that must be just this, or an error of this class."""

    def answered(answer: Any) -> None:
        assert isinstance(answer, wanted) if isinstance(wanted, type) else answer == wanted, (answer, wanted)

    return answered


def test_the_store_does_what_the_model_does(server: Server) -> None:
    print(f"PENSTOCK_MODEL_SEED={SEED} PENSTOCK_MODEL_EXAMPLES={EXAMPLES}")
    run_state_machine_as_test(
        seed(SEED)(lambda: StoreMachine(server)),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
            database=None,
        ),
    )

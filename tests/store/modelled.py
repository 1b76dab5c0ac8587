"""Run sessions on a store and on the plain model (plain_model.py): each call is made on both."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine, initialize

from services.store import Delivery, Queue, QueueSpec
from services.store.model import records
from services.store.model.errors import QueueFull
from services.store.model.keys import DomainKeys
from tests.servers import Client, Server
from tests.store.desk import bodies, encode
from tests.store.lane import DATASET, Lane, begin
from tests.store.plain_model import ModelQueue

SPECS = (
    QueueSpec(ack_level="fsync", max_deliveries=2),
    QueueSpec(ack_level="fsync", max_deliveries=0),
    QueueSpec(ack_level="fsync", max_length=90),
)
RUNS = (1, 2, 3, 5, 31, 32, 33, 70)  # messages published at once; an entry has at most 32
WANTS = (1, 2, 7, 31, 32, 33, 100)  # messages taken at once


class Held:
    """A leased message: its delivery, cut to this message."""

    def __init__(self, queue: int, delivery: Delivery) -> None:
        self.queue = queue
        self.delivery = delivery
        self.body = bodies([delivery])[0]


class Modelled(RuleBasedStateMachine):
    """Three sessions, and a queue with its model for each of SPECS; subclasses define the actions."""

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
        self.last: dict[str, Any] = {}
        self.fenced = [0] * len(SPECS)

    def new_lane(self) -> Lane:
        self.born += 1
        return Lane(self.client, f"session{self.born}", self.epoch)

    def send(self, lane: Lane) -> None:
        self.last[lane.session] = lane.send()

    def fresh(self, rnd: random.Random, count: int) -> list[bytes]:
        """Return new bodies, unique in the whole run, of different sizes; some fill an entry."""
        size = rnd.choice((0, 0, 20, 300, 1500))
        made = [b"%d." % (self.serial + i) + b"x" * rnd.randint(0, size) for i in range(count)]
        self.serial += count
        return made

    def pick(self, rnd: random.Random, lane: Lane, queue: int) -> list[Held]:
        mine = [h for h in self.held[lane.session].values() if h.queue == queue]
        if not mine:
            return []
        mine.sort(key=lambda h: h.body)
        return rnd.sample(mine, rnd.choice((1, len(mine), rnd.randint(1, len(mine)))))

    def let_go(self, lane: Lane, chosen: list[Held]) -> None:
        for h in chosen:
            del self.held[lane.session][h.body]
            self.stale.append((lane, h))
        del self.stale[:-200]

    def settle_all(self, lane: Lane, queue: int) -> None:
        held = [h for h in self.held[lane.session].values() if h.queue == queue]
        if held:
            self.let_go(lane, held)
            self.models[queue].settle(h.body for h in held)
            lane.messages.settle(lane.source, [h.delivery for h in held], expect(None))
            lane.send()

    def peeked(self, queue: Queue) -> list[bytes]:
        flat = self.client.call("FCALL_RO", "ps1_peek", 8, *queue.keys, 100, 4 << 20)
        return [
            records.decode(r).body
            for i in range(0, len(flat), 8)
            for r in records.split(flat[i + 5], flat[i + 4])
        ]

    # requests: each adds to the current call and applies the same to the model

    def ask_publish(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        new = self.fresh(rnd, rnd.choice(RUNS))
        fit = self.models[queue].publish(new)
        expected = [(i, QueueFull) for i in range(fit, len(new))]

        def published(refusals: Any) -> None:
            assert [(index, type(why)) for index, why in refusals] == expected

        lane.messages.publish(
            lane.source, self.queues[queue], encode(*new), rnd.choice(("a 1", "b 2")), published
        )

    def ask_take(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        taken = self.models[queue].take(lane.session, rnd.choice(WANTS))
        expected = [(m.body, m.acquired, m.failed, m.note) for m in taken]

        def took(deliveries: Any, more: bool) -> None:
            got = [Held(queue, one) for d in deliveries for one in singles(d)]
            results = [(h.body, h.delivery.acquired, h.delivery.failed, h.delivery.note) for h in got]
            assert results == expected
            self.held[lane.session].update({h.body: h for h in got})

        # a take of 0 has no result; the store is asked for as many messages as the model returned
        lane.messages.take(lane.source, self.queues[queue], max(1, len(taken)), took)

    def ask_settle(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        chosen = self.pick(rnd, lane, queue)
        if chosen:
            self.let_go(lane, chosen)
            self.models[queue].settle(h.body for h in chosen)
            lane.messages.settle(lane.source, [h.delivery for h in chosen], expect(None))

    def ask_release(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        chosen = self.pick(rnd, lane, queue)
        if chosen:
            self.let_go(lane, chosen)
            failed, to_end = rnd.random() < 0.5, rnd.random() < 0.3
            for h in chosen:
                self.models[queue].give_back(h.body, failed=failed, to_end=to_end)
            lane.messages.release(
                lane.source, [h.delivery for h in chosen], failed=failed, to_end=to_end, done=expect(None)
            )

    def ask_reject(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        chosen = self.pick(rnd, lane, queue)[:5]
        if chosen:
            self.let_go(lane, chosen)
            for h in chosen:
                self.models[queue].reject(h.body)
            lane.messages.reject(lane.source, [h.delivery for h in chosen], "refused", "no", expect(None))

    def ask_note(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        for h in self.pick(rnd, lane, queue)[:3]:
            self.serial += 1
            note = rnd.choice(("", f"{self.serial};,/", "x" * 200))
            self.models[queue].write(h.body, note)
            lane.messages.note(lane.source, h.delivery, note, expect(None))

    def ask_count(self, rnd: random.Random, lane: Lane, queue: int) -> None:
        lane.messages.count(lane.source, self.queues[queue], expect(len(self.models[queue].ready)))

    def one_call(self, lane: Lane, rnd: random.Random, steps: int) -> None:
        """Choose a random number of these."""
        asks: tuple[Callable[[random.Random, Lane, int], None], ...] = (
            *(self.ask_publish, self.ask_take, self.ask_take, self.ask_settle, self.ask_release),
            *(self.ask_reject, self.ask_note, self.ask_count),
        )
        kinds = rnd.choices(asks, (30, 20, 15, 20, 20, 4, 10, 3), k=steps)
        taken: set[int] = set()
        for ask in kinds:
            queue = rnd.randrange(len(SPECS))
            if ask == self.ask_take:
                if queue in taken:
                    continue  # one call cannot settle its own deliveries: this keeps the model simple
                taken.add(queue)
            ask(rnd, lane, queue)
        if lane.waiting:
            self.send(lane)


def singles(delivery: Delivery) -> list[Delivery]:
    found = []
    while delivery.count > 1:
        one, delivery = delivery.cut(1)
        found.append(one)
    return [*found, delivery]


def expect(wanted: Any) -> Callable[[Any], None]:
    """Expect this answer, or an error of this class."""

    def answered(answer: Any) -> None:
        assert isinstance(answer, wanted) if isinstance(wanted, type) else answer == wanted, (answer, wanted)

    return answered

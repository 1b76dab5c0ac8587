"""Compare random work of several sessions and queues with the plain model (plain_model.py, modelled.py).

The requests in one call are executed in sequence; a repeated call gets the same answer without effect; only the holder
of a message settles it; dead sessions return their messages. After every step each message is exactly once ready,
leased, dead or done, in the right order, and all counters are correct.

pipeline/test_requests_model.py runs it, with requests of a ring among the other work.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from redis.exceptions import ResponseError

from services.store import CommitPart
from services.store.model.errors import LeaseLost, QueueFull
from tests.store.desk import encode
from tests.store.modelled import SPECS, Held, Modelled, expect

COUNTERS = ("added", "delivered", "acked", "returned", "dead", "emptied")
KEYS = ("s", "q", "l", "r", "f", "m", "d", "x")

sessions = st.integers(0, 2)
queues = st.integers(0, len(SPECS) - 1)
randoms = st.integers(0, 1 << 30).map(random.Random)


class StoreMachine(Modelled):
    """The possible steps, and the invariants after each."""

    @rule(number=sessions, rnd=randoms, steps=st.integers(1, 4))
    def work(self, number: int, rnd: random.Random, steps: int) -> None:
        """Make several requests of one connection in one call (tmq.md 1.2)."""
        self.one_call(self.lanes[number], rnd, steps)

    @rule(rnd=randoms, calls=st.integers(2, 12))
    def work_long(self, rnd: random.Random, calls: int) -> None:
        for _ in range(calls):
            self.one_call(rnd.choice(self.lanes), rnd, rnd.randint(1, 3))

    @rule(number=sessions, rnd=randoms)
    def repeat(self, number: int, rnd: random.Random) -> None:
        """Repeat a call after a lost reply: same answer, no second effect (docs/store.md, Exactly once inside)."""
        lane = self.lanes[number]
        if lane.session in self.last:
            assert lane.again() == self.last[lane.session]

    @rule(number=sessions, rnd=randoms)
    def commit(self, number: int, rnd: random.Random) -> None:
        """Settle and publish in up to three queues, all or nothing (tmq.md 5.3)."""
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
            parts.append(CommitPart(self.queues[queue], held, encode(*new[queue]), "commit"))
        answers: list[Any] = []
        self.serial += 1
        identifier = f"t{self.serial}"
        lane.idempotent.commit(lane.source, identifier, parts, answers.append)
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
        if rnd.random() < 0.5:  # a repeat with the same identifier has no effect
            lane.idempotent.commit(lane.source, identifier, parts, expect(None))
            self.send(lane)

    def spoil(self, rnd: random.Random, chosen: dict[int, list[Held]]) -> Held | None:
        """Add a delivery that the committing session does not hold."""
        foreign = [h for _, h in self.stale if h.queue in chosen]
        return rnd.choice(foreign) if foreign else None

    @rule(rnd=randoms, number=sessions)
    def settle_what_is_not_ours(self, rnd: random.Random, number: int) -> None:
        """Make late, double and foreign settles, which are fenced and counted without effect."""
        lane = self.lanes[number]
        foreign = [(lane, h) for s, held in self.held.items() if s != lane.session for h in held.values()]
        late = [(owner, h) for owner, h in self.stale if owner in self.lanes]
        for candidates in (foreign, late):
            if not candidates:
                continue
            owner, h = rnd.choice(candidates)
            how = rnd.randrange(4)
            if how == 0:
                owner.messages.settle(owner.source, [h.delivery], expect(LeaseLost))
            elif how == 1:
                owner.messages.release(owner.source, [h.delivery], failed=True, done=expect(LeaseLost))
            elif how == 2:
                owner.messages.note(owner.source, h.delivery, "late", expect(LeaseLost))
            else:
                owner.messages.reject(owner.source, [h.delivery], "refused", "", expect(LeaseLost))
            self.send(owner)
            self.fenced[h.queue] += 1

    @rule(number=sessions)
    def die(self, number: int) -> None:
        """Kill the session: its messages return to their places as failed, and its calls are refused."""
        lane = self.lanes[number]
        lane.die()
        sweeper = self.lanes[(number + 1) % len(self.lanes)]
        assert sweeper.fence() == [lane.session]
        lane.messages.count(lane.source, self.queues[0], expect(0))
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

    @rule(queue=queues, is_meant=st.sampled_from((True, False, False, False)))
    def remove_what_is_ready(self, queue: int, is_meant: bool) -> None:
        """Purge the ready messages; leased ones stay (docs/store.md, Purging)."""
        if not is_meant:  # fuller queues are more useful here
            return
        q, model = self.queues[queue], self.models[queue]
        self.serial += 1
        keys, more, octets = [*q.keys, self.keys.emptied(f"r{self.serial}")], 1, model.ready_bytes()
        last, ready, _ = self.client.call("FCALL_RO", "ps1_ready", len(q.keys), *q.keys)
        while more:
            removed, removed_octets, more, last = self.lanes[0].function("empty", keys, last)
        assert removed == ready
        assert (removed, removed_octets) == (model.remove_ready(), octets)

    @rule(queue=queues, step=st.sampled_from((2, 500, 500)))
    def tidy(self, queue: int, step: int) -> None:
        """Move old entries and reconcile; the counters are right."""
        q = self.queues[queue]
        keys = (*q.keys, self.keys.samples)
        counted = self.lanes[0].function("upkeep", keys, -1000, step, 0, q.name, 1000)
        assert counted == [] or counted[:3] == counted[3:]

    @rule()
    def next_generation(self) -> None:
        """Begin a new generation of ids; order and leases stay."""
        dataset, _, generation = self.epoch.partition(".")
        newer = f"{dataset}.{int(generation) + 1}"
        self.client.call("FCALL", "ps1_set_epoch", 1, self.keys.epoch, self.epoch, newer)
        self.epoch = newer
        for lane in self.lanes:
            lane.epoch = newer
        self.last.clear()

    # invariants

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

    def teardown(self) -> None:
        try:
            if hasattr(self, "lanes"):
                self.empty()
        finally:
            self.client.close()

    def empty(self) -> None:
        """Settle everything: only dead letters and counters remain in any key."""
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

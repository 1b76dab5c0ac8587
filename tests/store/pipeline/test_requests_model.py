"""Requests of a ring among other operations, compared with the plain model (store_machine.py; ring.md 5.4).

Any session repeats an id's answer; nothing is done twice; a settlement by id
settles the leased message only while the lease is the same.

PENSTOCK_MODEL_EXAMPLES sets the number of examples, PENSTOCK_MODEL_SEED their seed; a failure prints both.
"""

from __future__ import annotations

import os
import random
import secrets
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import rule, run_state_machine_as_test

from services.store import Outcome
from services.store.model.errors import MessageTooLarge, QueueFull
from services.store.model.identities import RequestId
from services.store.model.requests import Nothing, Pulled, Settlement
from tests.servers import Server
from tests.store.desk import bodies, encode
from tests.store.lane import Lane
from tests.store.modelled import Held
from tests.store.requesting import KEEP_MS, request_id
from tests.store.store_machine import StoreMachine, queues, randoms, sessions
from tests.stores import every_server

EXAMPLES = int(os.environ.get("PENSTOCK_MODEL_EXAMPLES", "12"))
SEED = int(os.environ.get("PENSTOCK_MODEL_SEED", secrets.randbits(32)))
STEPS = 60


@dataclass
class Known:
    """A request by id and its answer; of a pull, the lease."""

    queue: int
    answer: Any
    owner: Lane | None = None
    held: Held | None = None


class RequestMachine(StoreMachine):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.pushes: dict[bytes, Known] = {}
        self.pulls: dict[bytes, Known] = {}

    def new_id(self) -> bytes:
        self.serial += 1
        return request_id(self.serial)

    def ask(self, lane: Lane, verb: str, *args: Any) -> Any:
        """Return the answer; it may take two calls."""
        results: list[Any] = []
        getattr(lane.idempotent, verb)(lane.source, *args, results.append)
        while lane.waiting:
            self.send(lane)
        (answer,) = results
        return answer

    def is_leased(self, known: Known) -> bool:
        """Return whether the lease is still the same."""
        if known.owner is None or known.held is None:
            return False
        return self.held.get(known.owner.session, {}).get(known.held.body) is known.held

    @rule(number=sessions, queue=queues, rnd=randoms)
    def push(self, number: int, queue: int, rnd: random.Random) -> None:
        lane, request = self.lanes[number], self.new_id()
        (body,) = self.fresh(rnd, 1)
        fit = self.models[queue].publish([body])
        reply = self.ask(
            lane, "publish", RequestId(request, KEEP_MS), self.queues[queue], *encode(body), "ring"
        )
        assert reply is Outcome.STORED if fit else isinstance(reply, QueueFull)
        self.pushes[request] = Known(queue, reply)

    @rule(number=sessions, rnd=randoms)
    def push_again(self, number: int, rnd: random.Random) -> None:
        if not self.pushes:
            return
        request, known = rnd.choice(list(self.pushes.items()))
        args = (self.queues[known.queue], *encode(b"never"), "ring")
        reply = self.ask(self.lanes[number], "publish", RequestId(request, KEEP_MS), *args)
        assert reply is Outcome.AGAIN if known.answer is Outcome.STORED else isinstance(reply, QueueFull)

    @rule(number=sessions, queue=queues, rnd=randoms)
    def pull(self, number: int, queue: int, rnd: random.Random) -> None:
        lane, request, model = self.lanes[number], self.new_id(), self.models[queue]
        largest = rnd.choice((10, 2000))
        taken = model.take(lane.session, 1)
        reply = self.ask(lane, "pull", request, self.queues[queue], largest, KEEP_MS)
        known = self.pulls[request] = Known(queue, reply)
        if not taken:
            assert reply is Nothing.EMPTY
        elif len(taken[0].body) > largest:
            assert isinstance(reply, MessageTooLarge)
            model.give_back(taken[0].body, failed=False, to_end=False)
            model.counts.subtract(("delivered", "returned"))  # it reached no client
        else:
            self.check(reply, taken[0], again=False)
            known.owner, known.held = lane, Held(queue, reply.delivery)
            self.held[lane.session][taken[0].body] = known.held

    def check(self, value: Any, message: Any, *, again: bool) -> None:
        assert isinstance(value, Pulled)
        d = value.delivery
        assert (value.again, bodies([d]), d.acquired, d.failed, d.note) == (
            again,
            [message.body],
            message.acquired,
            message.failed,
            message.note,
        )

    @rule(number=sessions, rnd=randoms)
    def pull_again(self, number: int, rnd: random.Random) -> None:
        if not self.pulls:
            return
        request, known = rnd.choice(list(self.pulls.items()))
        reply = self.ask(self.lanes[number], "pull", request, self.queues[known.queue], 2000, KEEP_MS)
        if known.held is None:
            assert reply is known.answer or type(reply) is type(known.answer)
        elif self.is_leased(known):
            _, message = self.models[known.queue].leased[known.held.body]
            self.check(reply, message, again=True)
            if known.owner is not self.lanes[number]:  # its last answer names a lease that another may end
                self.last.pop(self.lanes[number].session, None)
        else:
            assert reply is Nothing.EXPIRED

    @rule(number=sessions, rnd=randoms)
    def settle(self, number: int, rnd: random.Random) -> None:
        if not self.pulls:
            return
        request, known = rnd.choice(list(self.pulls.items()))
        leased = self.is_leased(known)
        reply = self.ask(self.lanes[number], "settle", request, self.queues[known.queue])
        if known.held is None:
            assert reply is Settlement.UNKNOWN
        elif not leased:
            settled = known.answer is Settlement.SETTLED
            assert reply is (Settlement.AGAIN if settled else Settlement.EXPIRED)
        else:
            assert reply is Settlement.SETTLED
            assert known.owner is not None
            known.answer = reply
            self.let_go(known.owner, [known.held])
            self.models[known.queue].settle([known.held.body])
            if known.owner is not self.lanes[number]:  # its last answer names a lease that it no longer has
                self.last.pop(known.owner.session, None)


@every_server
def test_requests_match_the_model(server: Server) -> None:
    print(f"PENSTOCK_MODEL_SEED={SEED} PENSTOCK_MODEL_EXAMPLES={EXAMPLES}")
    run_state_machine_as_test(
        seed(SEED)(lambda: RequestMachine(server)),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
            database=None,
        ),
    )

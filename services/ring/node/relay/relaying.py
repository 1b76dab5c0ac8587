"""Carries out what the relay decides about each USER of the predecessor (ring.md 5.3 to 5.5, 5.7): the Arrivals.

What comes is begun in the order in which it came, also if it must be asked first whether a queue is here: all behind it
waits for that. It is answered by `A` in this order, too, once it is safe.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from protos.ring import (
    NO_ID,
    Answer,
    Around,
    CameBack,
    Deliver,
    Drop,
    Frame,
    PassOn,
    Relay,
    Request,
    Settle,
    TakenOff,
    Why,
    encode_frame,
)
from services.ring.node import counts
from services.ring.node.boxes.inbox import Inbox
from services.ring.node.counts import Counts
from services.ring.node.jobs import Job, Jobs
from services.ring.node.outgoing.outgoing import AGAIN_S, BEGUN, PASSED
from services.ring.node.outgoing.storing import PATIENCE_S, Storing
from services.ring.node.queues.around import RingAsker
from services.ring.node.queues.lookups import Lookups
from services.ring.node.queues.serving import NotHere, Reply, Serving, Settled
from services.ring.node.relay.pending import Pending
from services.store import Queue, StoreError

log = logging.getLogger(__name__)


class Relaying:
    def __init__(
        self,
        relay: Relay,
        storing: Storing,
        lookups: Lookups,
        serving: Serving,
        inbox: Inbox,
        asker: RingAsker,
        counted: Counts,
        forwards: bool,
        mark_came_back: Callable[[], None],
        failed: Callable[[], None],
    ) -> None:
        """failed: told of each fault of ours."""
        self._relay = relay
        self._storing = storing
        self._lookups = lookups
        self._serving = serving
        self._inbox = inbox
        self._asker = asker
        self._count = counted.now
        self._forwards = forwards
        self._mark_came_back = mark_came_back
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._jobs = Jobs(self._count_unsafe)
        self._gate: deque[Job] = deque()  # of them, not begun yet
        self._pending = Pending()
        self._refused: dict[
            bytes, list[Job]
        ] = {}  # by queue: what the store refused, and what came behind it
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._jobs)

    def received(self, payload: bytes, safe: Callable[[], None]) -> None:
        if self._is_closed:
            return
        job = self._jobs.begin(self._relay.route(payload), payload, safe)
        if isinstance(job.route, Request | Settle):
            self._look_up(job, job.route.frame.queue)
        elif isinstance(job.route, Deliver) and not self._inbox.is_known:
            job.waits = True
            self._inbox.when_known(partial(self._found, job, None))
        if job.waits or self._gate:
            self._gate.append(job)
        else:
            self._begin(job)

    def close(self) -> None:
        """What is not answered by now is not safe: it comes again."""
        self._is_closed = True
        self._jobs.close()
        self._gate.clear()
        self._refused.clear()

    # in order

    def _look_up(self, job: Job, name: bytes) -> None:
        job.queue = self._lookups.held(name)
        if job.queue is None:
            job.waits = True
            self._lookups.ask(name, partial(self._found, job))

    def _found(self, job: Job, queue: Queue | StoreError | None) -> None:
        job.waits = False
        if isinstance(queue, StoreError):
            self._jobs.end(job, False)
        else:
            job.queue = queue
        if self._is_closed:
            return
        while self._gate and not self._gate[0].waits:
            waiting = self._gate.popleft()
            if not waiting.is_over:
                self._route_again(waiting)
                self._begin(waiting)

    def _route_again(self, job: Job) -> None:
        """While it waited the same frame may have been passed on or carried out."""
        match job.route:
            case Request(frame) | Settle(frame) | PassOn(frame) if frame.request_id != NO_ID:
                job.route = self._relay.route_frame(frame)

    def _count_unsafe(self) -> None:
        self._count[counts.UNSAFE] += 1

    # what is to be done

    def _begin(self, job: Job) -> None:
        self._guarded(job, self._carry_out, job)

    def _guarded(self, job: Job, work: Callable[..., None], *args: Any) -> None:
        """A fault of ours is that of one message, which is not safe then, and not the end of all behind it."""
        try:
            work(*args)
        except Exception:
            log.exception("a message of the ring failed", extra={"action": "job_failed", "job": "ring relay"})
            self._failed()
            self._jobs.fail(job)

    def _carry_out(self, job: Job) -> None:
        match job.route:
            case PassOn(frame, around):
                self._pass_on(job, frame, around)
            case Deliver(payload, around):
                self._deliver(job, payload, around)
            case Request() | Settle():
                self._serve(job)
            case Answer(frame):
                self._taken(job, counts.ANSWERED if self._asker.answered(frame) else counts.LATE)
            case CameBack(frame):
                self._taken(job, counts.CAME_BACK if self._asker.came_back(frame) else counts.LATE)
            case TakenOff():
                self._taken(job, counts.TAKEN_OFF)
            case Drop(why):
                if why is Why.MARK:
                    self._mark_came_back()
                self._taken(job, why.value)

    def _taken(self, job: Job, what: str) -> None:
        self._count[what] += 1
        self._jobs.end(job, True)

    def _pass_on(self, job: Job, frame: Frame | None, around: Around) -> None:
        if self._pending.joins(job, frame):
            return
        self._storing.put(around.with_between(job.payload), PASSED, partial(self._passed, job, frame))
        self._pending.begin(frame)

    def _passed(self, job: Job, frame: Frame | None, is_stored: bool) -> None:
        if is_stored:
            self._count[counts.PASSED_ON] += 1
            if frame is not None:
                self._relay.passed(frame)
        for again in self._pending.end(frame):
            self._jobs.end(again, is_stored)
        self._jobs.end(job, is_stored)

    def _deliver(self, job: Job, payload: bytes, around: Around) -> None:
        """Into the inbox, and on at the same time: what is passed on keeps its order (5.7).

        A node without an inbox is nobody's destination: there it goes on in any case.
        """
        if not self._inbox.is_bound:
            self._pass_on(job, None, around)
            return
        job.parts = 2 if self._forwards else 1
        self._inbox.deliver(payload, partial(self._delivered, job))
        if self._forwards:
            self._pass_on(job, None, around)

    def _delivered(self, job: Job, what: str) -> None:
        if what != counts.UNSAFE:
            self._count[what] += 1
        self._jobs.end(job, what != counts.UNSAFE)

    # requests

    def _serve(self, job: Job) -> None:
        assert isinstance(job.route, Request | Settle)
        frame, queue = job.route.frame, job.queue
        if self._pending.joins(job, frame):
            return
        if frame.queue in self._refused:
            self._refused[frame.queue].append(job)  # what stands before it has not been put in yet
            return
        if isinstance(job.route, Request) and job.route.again:
            queue = queue or self._lookups.past(frame.queue)
        self._serving.carry_out(frame, queue, partial(self._guarded, job, self._served, job, frame))

    def _served(self, job: Job, frame: Frame, told: Reply | Settled | NotHere | StoreError) -> None:
        match told:
            case Reply(reply, stored, unsafe):
                done = partial(self._replied, job, frame, stored, unsafe)
                self._storing.put([encode_frame(reply)], BEGUN, done)
            case Settled():
                self._relay.served(frame)
                self._taken(job, counts.SETTLED)
            case NotHere():
                self._not_here(job, frame)
            case StoreError():
                self._again_later(job, frame.queue)

    def _again_later(self, job: Job, queue: bytes) -> None:
        """With all that names the same queue, in the order in which it came."""
        if self._loop.time() - job.since > PATIENCE_S:
            self._jobs.end(job, False)
        elif not self._is_closed:
            if queue not in self._refused:
                self._refused[queue] = []
                self._loop.call_later(AGAIN_S, self._serve_again, queue)
            self._refused[queue].append(job)

    def _serve_again(self, queue: bytes) -> None:
        for job in sorted(self._refused.pop(queue, ()), key=lambda job: job.serial):
            if not self._is_closed:
                self._guarded(job, self._serve, job)

    def _not_here(self, job: Job, frame: Frame) -> None:
        self._lookups.forget(frame.queue)
        around = job.route.around if isinstance(job.route, Request) else Around()
        self._pass_on(job, frame, around)

    def _replied(
        self,
        job: Job,
        frame: Frame,
        stored: Callable[[], None] | None,
        unsafe: Callable[[], None] | None,
        is_stored: bool,
    ) -> None:
        if is_stored:
            self._relay.served(frame)
            self._count[counts.SERVED] += 1
        then = stored if is_stored else unsafe
        if then is not None:
            then()
        self._jobs.end(job, is_stored)

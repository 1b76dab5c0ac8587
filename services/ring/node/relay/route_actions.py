"""Carry out the relay's decision about each USER of the predecessor (ring.md 5.3 to 5.5, 5.7): the UserSink.

Messages begin in order of arrival: if a queue lookup holds one up, all behind it wait. They are answered with `A` in
this order, too, once they are safe.
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
    CameBack,
    Deliver,
    Drop,
    DropReason,
    Frame,
    PassOn,
    Questions,
    Relay,
    Request,
    Settle,
    TakenOff,
    encode_frame,
)
from services.ring.node.boxes.inbox import Inbox
from services.ring.node.counts import Counts, UserOutcome
from services.ring.node.jobs import Job, Jobs
from services.ring.node.outgoing.outgoing import AGAIN_S, BEGUN, PASSED
from services.ring.node.outgoing.writer import PATIENCE_S, QueueWriter
from services.ring.node.queues.queue_cache import QueueCache
from services.ring.node.queues.remote_requests import RemoteRequests
from services.ring.node.queues.serving import NotHere, Reply, Serving, Settled
from services.ring.node.relay.pending import Pending
from services.store import Queue, StoreError

log = logging.getLogger(__name__)


class Relaying:
    """The UserSink of a node."""

    def __init__(
        self,
        relay: Relay,
        writer: QueueWriter,
        queue_cache: QueueCache,
        serving: Serving,
        inbox: Inbox,
        remote_requests: RemoteRequests,
        counted: Counts,
        forwards: bool,
        mark_came_back: Callable[[], None],
        failed: Callable[[], None],
    ) -> None:
        """failed: called for each internal error."""
        self._relay = relay
        self._writer = writer
        self._queue_cache = queue_cache
        self._serving = serving
        self._inbox = inbox
        self._remote_requests = remote_requests
        self._count = counted.now
        self._forwards = forwards
        self._mark_came_back = mark_came_back
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._jobs = Jobs(self._count_unsafe)
        self._waiting: deque[Job] = deque()  # jobs not begun, in order
        self._pending = Pending()
        # By queue: requests that the store refused, and those behind them.
        self._refused: dict[bytes, list[Job]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        """Return how many messages are not answered."""
        return len(self._jobs)

    def received(self, payload: bytes, safe: Callable[[], None]) -> None:
        """Decide what to do with a message and begin it, in order; call `safe` once it is stored."""
        if self._is_closed:
            return
        job = self._jobs.begin(self._relay.route(payload), payload, safe)
        if isinstance(job.route, Request | Settle):
            self._find_queue(job, job.route.frame.queue)
        elif isinstance(job.route, Deliver) and not self._inbox.is_known:
            job.waits = True
            self._inbox.when_known(partial(self._found, job, None))
        if job.waits or self._waiting:
            self._waiting.append(job)
        else:
            self._begin(job)

    def close(self) -> None:
        """Stop: what is not answered by now is not safe, and is sent again."""
        self._is_closed = True
        self._jobs.close()
        self._waiting.clear()
        self._refused.clear()

    def _find_queue(self, job: Job, name: bytes) -> None:
        job.queue = self._queue_cache.held(name)
        if job.queue is None:
            job.waits = True
            self._queue_cache.find(name, partial(self._found, job))

    def _found(self, job: Job, queue: Queue | StoreError | None) -> None:
        job.waits = False
        if isinstance(queue, StoreError):
            self._jobs.end(job, False)
        else:
            job.queue = queue
        if self._is_closed:
            return
        while self._waiting and not self._waiting[0].waits:
            waiting = self._waiting.popleft()
            if not waiting.is_over:
                self._route_again(waiting)
                self._begin(waiting)

    def _route_again(self, job: Job) -> None:
        """Decide again: while the job waited a copy may have been forwarded or carried out."""
        match job.route:
            case Request(frame) | Settle(frame) | PassOn(frame) if frame.request_id != NO_ID:
                job.route = self._relay.route_frame(frame)

    def _count_unsafe(self) -> None:
        self._count[UserOutcome.UNSAFE] += 1

    def _begin(self, job: Job) -> None:
        self._guarded(job, self._carry_out, job)

    def _guarded(self, job: Job, work: Callable[..., None], *args: Any) -> None:
        """Limit an internal error to one message, which is then not safe, so that those behind it go on."""
        try:
            work(*args)
        except Exception:
            log.exception(
                "internal error; message not answered",
                extra={"action": "job_failed", "job": "ring relay"},
            )
            self._failed()
            self._jobs.fail(job)

    def _carry_out(self, job: Job) -> None:
        match job.route:
            case PassOn(frame, questions):
                self._pass_on(job, frame, questions)
            case Deliver(payload, questions):
                self._deliver(job, payload, questions)
            case Request() | Settle():
                self._serve(job)
            case Answer(frame):
                self._taken(
                    job, UserOutcome.ANSWERED if self._remote_requests.answered(frame) else UserOutcome.LATE
                )
            case CameBack(frame):
                self._taken(
                    job, UserOutcome.CAME_BACK if self._remote_requests.came_back(frame) else UserOutcome.LATE
                )
            case TakenOff():
                self._taken(job, UserOutcome.TAKEN_OFF)
            case Drop(why):
                if why is DropReason.MARK:
                    self._mark_came_back()
                self._taken(job, why.value)

    def _taken(self, job: Job, what: str) -> None:
        self._count[what] += 1
        self._jobs.end(job, True)

    def _pass_on(self, job: Job, frame: Frame | None, questions: Questions) -> None:
        if self._pending.joins(job, frame):
            return
        self._writer.put(questions.with_between(job.payload), PASSED, partial(self._passed, job, frame))
        self._pending.begin(frame)

    def _passed(self, job: Job, frame: Frame | None, is_stored: bool) -> None:
        if is_stored:
            self._count[UserOutcome.PASSED_ON] += 1
            if frame is not None:
                self._relay.passed(frame)
        for again in self._pending.end(frame):
            self._jobs.end(again, is_stored)
        self._jobs.end(job, is_stored)

    def _deliver(self, job: Job, payload: bytes, questions: Questions) -> None:
        """Put a message into the inbox and, with `forward_user`, forward it at the same time to keep the order (5.7).

        A node without an inbox always forwards.
        """
        if not self._inbox.is_bound:
            self._pass_on(job, None, questions)
            return
        job.parts = 2 if self._forwards else 1
        self._inbox.deliver(payload, partial(self._delivered, job))
        if self._forwards:
            self._pass_on(job, None, questions)

    def _delivered(self, job: Job, what: str) -> None:
        if what != UserOutcome.UNSAFE:
            self._count[what] += 1
        self._jobs.end(job, what != UserOutcome.UNSAFE)

    def _serve(self, job: Job) -> None:
        assert isinstance(job.route, Request | Settle)
        frame, queue = job.route.frame, job.queue
        if self._pending.joins(job, frame):
            return
        if frame.queue in self._refused:
            self._refused[frame.queue].append(job)  # requests before it are not done
            return
        if isinstance(job.route, Request) and job.route.again:
            queue = queue or self._queue_cache.past(frame.queue)
        self._serving.carry_out(frame, queue, partial(self._guarded, job, self._served, job, frame))

    def _served(self, job: Job, frame: Frame, outcome: Reply | Settled | NotHere | StoreError) -> None:
        match outcome:
            case Reply(reply, stored, unsafe):
                done = partial(self._replied, job, frame, stored, unsafe)
                self._writer.put([encode_frame(reply)], BEGUN, done)
            case Settled():
                self._relay.served(frame)
                self._taken(job, UserOutcome.SETTLED)
            case NotHere():
                self._not_here(job, frame)
            case StoreError():
                self._again_later(job, frame.queue)

    def _again_later(self, job: Job, queue: bytes) -> None:
        """Retry later, together with all requests for the same queue, in order of arrival."""
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
        self._queue_cache.forget(frame.queue)
        questions = job.route.questions if isinstance(job.route, Request) else Questions()
        self._pass_on(job, frame, questions)

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
            self._count[UserOutcome.SERVED] += 1
        then = stored if is_stored else unsafe
        if then is not None:
            then()
        self._jobs.end(job, is_stored)

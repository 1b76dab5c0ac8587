"""Record spans of messages that became dead letters.

Messages may die inside the store: in a sweep, by expiry, by overflow. Their dead letters keep the trace context, so one
process per domain reads new dead letters and records a span for each traced one. The span id is derived from the
letter's id, so that reading a letter twice repeats the same span.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets

from services.store.catalogue.listing import Listing
from services.store.deadletters.dead_letters import DeadLetters
from services.store.model.dead_letter import DeadLetter, Filter
from services.store.model.errors import StoreError, StoreUnavailable
from services.store.model.queues import Queue
from services.store.model.trace_context import Context, of_attributes
from services.store.pipeline.domain import Domain
from services.store.pipeline.domains import Domains
from services.store.tracing.spans import Kind, Recorder, Value, readable, start_span

log = logging.getLogger(__name__)

READ = 200  # letters per call
LEASE = 3  # polls: duration of the lease on a domain
BACK = 6  # polls: how far back a new reader begins; it may start LEASE and two more after the death of another one
LONGEST_ERROR = 200


class DeadSpans:
    """A poller that traces dead letters every `poll_s` seconds, from `start` until `close`."""

    def __init__(self, listing: Listing, domains: Domains, recorder: Recorder, poll_s: float) -> None:
        self._listing = listing
        self._domains = domains
        self._recorder = recorder
        self._poll_s = poll_s
        self._holder = secrets.token_hex(8)
        self._read: dict[str, str] = {}  # last letter read, by queue id
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to poll."""
        self._task = asyncio.create_task(self._poll_for_ever(), name="store dead letters traced")

    async def close(self) -> None:
        """Stop polling. Another process takes the domains over when their leases expire."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _poll_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                await self.poll()
            except StoreError as error:
                log.info("dead letters are not traced now: %s", error, extra={"action": "dead_untraced"})
            except Exception:
                fields = {"action": "dead_untraced"}
                log.exception("internal error: dead letters are not traced now", extra=fields)

    async def poll(self) -> None:
        """Trace the new dead letters of the domains that this process leases. Raises StoreError for the catalogue.

        An unreachable domain is skipped, and read from the same place the next time.
        """
        ours: dict[str, bool] = {}
        seen: dict[str, str] = {}
        async for queue in self._listing.queues():
            domain = self._domains.get(queue.domain)
            try:
                if queue.domain not in ours:
                    ours[queue.domain] = await self._lease(domain)
                if ours[queue.domain]:
                    seen[queue.qid] = await self._trace(domain, queue)
            except StoreError as error:
                if isinstance(error, StoreUnavailable):
                    ours[queue.domain] = False
                if queue.qid in self._read:
                    seen[queue.qid] = self._read[queue.qid]
                fields = {"action": "dead_untraced", "queue": queue.name, "domain": queue.domain}
                log.debug("dead letters of a queue are not traced now: %s", error, extra=fields)
        self._read = seen  # without deleted queues

    async def _lease(self, domain: Domain) -> bool:
        lease_ms = round(LEASE * self._poll_s * 1000)
        return bool(await domain.function("log_lease", [domain.keys.dead_traced], self._holder, lease_ms))

    async def _trace(self, domain: Domain, queue: Queue) -> str:
        """Trace the queue's new dead letters; return the id of the last one."""
        after = self._read.get(queue.qid)
        if after is None:
            after = f"{await domain.link.now_ms() - round(BACK * self._poll_s * 1000)}-0"
        letters, is_last = DeadLetters(domain, queue), False
        while not is_last:
            page = await letters.scan(after, Filter(), 0, READ, octets=0)
            for letter in page.letters:
                self._record(domain, queue, letter)
            after, is_last = page.last or after, page.is_last
        return after

    def _record(self, domain: Domain, queue: Queue, letter: DeadLetter) -> None:
        parent = of_attributes(letter.attributes)
        if parent is None or not parent.is_sampled or not self._recorder.follow():
            return
        more: dict[str, Value] = {
            "penstock.reason": letter.reason,
            "penstock.letter": letter.id,
            "penstock.acquired": letter.acquired,
            "penstock.failed": letter.failed,
            "penstock.redriven": letter.redriven,
            "penstock.origin": readable(letter.origin),
            "messaging.message.body.size": letter.size,
        }
        if letter.error:
            more["penstock.error"] = letter.error[:LONGEST_ERROR]
        context = Context(parent.trace_id, _span_id(queue, letter.id))
        span = start_span("dead", Kind.INTERNAL, queue, parent, context, more, "settle")
        span.start_ns = domain.pipe.clock.wall_ns(letter.died_ms)
        self._recorder.record(span.end(letter.reason, span.start_ns))


def _span_id(queue: Queue, letter: str) -> int:
    text = f"{queue.domain} {queue.qid} {letter}".encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.sha256(text).digest()[:8]) or 1

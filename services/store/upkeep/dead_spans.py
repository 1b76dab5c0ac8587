"""Spans of messages that died.

A message may die where nobody looks at it: in a sweep, for its age, to make room. All of them become dead letters,
which keep what they carried. So the letters are read, by one process of each domain, and each that is traced has a span
of the time at which it died. Its id is made of the letter's: whoever reads a letter again tells the same span again.
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
from services.store.tracing.spans import Kind, Recorder, Value, begun, readable

log = logging.getLogger(__name__)

READ = 200  # letters in one question
KEPT = 3  # looks: for so long a domain is one process's
BACK = 6  # looks: so far back whoever begins reads, who may come KEPT and two more after one that was killed
LONGEST_ERROR = 200


class DeadSpans:
    """From `start` until `close`; every `look_s` seconds."""

    def __init__(self, listing: Listing, domains: Domains, recorder: Recorder, look_s: float) -> None:
        self._listing = listing
        self._domains = domains
        self._recorder = recorder
        self._look_s = look_s
        self._holder = secrets.token_hex(8)
        self._read: dict[str, str] = {}  # by the queue's id: the last letter that was read
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._look_for_ever(), name="store dead letters traced")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._look_s)
            try:
                await self.look()
            except StoreError as error:
                log.info("dead letters are not traced: %s", error, extra={"action": "dead_untraced"})
            except Exception:
                log.exception("dead letters are not traced", extra={"action": "dead_untraced"})

    async def look(self) -> None:
        """Trace all new dead letters of the domains that this process reads. Raises StoreError for the catalogue.

        A domain that cannot be reached is left out until the next time, and is read on from the same place.
        """
        ours: dict[str, bool] = {}
        seen: dict[str, str] = {}
        async for queue in self._listing.queues():
            domain = self._domains.get(queue.domain)
            try:
                if queue.domain not in ours:
                    ours[queue.domain] = await self._is_ours(domain)
                if ours[queue.domain]:
                    seen[queue.qid] = await self._look_at(domain, queue)
            except StoreError as error:
                if isinstance(error, StoreUnavailable):
                    ours[queue.domain] = False
                if queue.qid in self._read:
                    seen[queue.qid] = self._read[queue.qid]
                fields = {"action": "dead_untraced", "queue": queue.name, "domain": queue.domain}
                log.debug("dead letters are not traced: %s", error, extra=fields)
        self._read = seen  # queues come and go

    async def _is_ours(self, domain: Domain) -> bool:
        kept_ms = round(KEPT * self._look_s * 1000)
        return bool(await domain.function("log_lease", [domain.keys.dead_traced], self._holder, kept_ms))

    async def _look_at(self, domain: Domain, queue: Queue) -> str:
        after = self._read.get(queue.qid)
        if after is None:
            after = f"{await domain.link.now_ms() - round(BACK * self._look_s * 1000)}-0"
        letters, is_last = DeadLetters(domain, queue), False
        while not is_last:
            looked = await letters.scan(after, Filter(), 0, READ, octets=0)
            for letter in looked.letters:
                self._tell(domain, queue, letter)
            after, is_last = looked.last or after, looked.is_last
        return after

    def _tell(self, domain: Domain, queue: Queue, letter: DeadLetter) -> None:
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
        context = Context(parent.trace_id, _id_of(queue, letter.id))
        span = begun("dead", Kind.INTERNAL, queue, parent, context, more, "settle")
        span.start_ns = domain.pipe.clock.wall_ns(letter.died_ms)
        self._recorder.record(span.ended(letter.reason, span.start_ns))


def _id_of(queue: Queue, letter: str) -> int:
    told = f"{queue.domain} {queue.qid} {letter}".encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.sha256(told).digest()[:8]) or 1

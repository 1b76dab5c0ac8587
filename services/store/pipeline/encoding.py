"""Encode a call as keys and arguments for lua/work.lua, with a handler for each of its replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.store.model import records
from services.store.model.identities import DeliveryToken, JournalNumber, RequestId
from services.store.model.keys import DomainKeys
from services.store.model.operations import (
    TAKE_BYTES,
    Commit,
    IdempotentPublish,
    Note,
    OnceOnly,
    Reject,
    Return,
    Round,
    Send,
    Source,
    Work,
    merge,
)
from services.store.model.queues import Queue
from services.store.model.requests import Pull, Request
from services.store.model.traced_entries import pack_traced
from services.store.pipeline import log_replies, once_replies, outcomes
from services.store.pipeline.outcomes import Handler
from services.store.pipeline.request_replies import requested
from services.store.pipeline.tallies import Tallies

FIRST_QUEUE = 7  # keys before those of the queues
LOG_ENTRY = 64 << 10  # octets of lines in one log entry; a longer line has an entry of its own


@dataclass(frozen=True, slots=True)
class Head:
    """The arguments before a call's operations. `deadline_ms` is by the store's clock, 0 for none."""

    epoch: str
    session: str
    sequence: int
    deadline_ms: int


class Encoder:
    """Encoder of one call. `handlers` has one handler per reply, `ordered` the ordered publishes among them."""

    def __init__(
        self,
        keys: DomainKeys,
        queues: Mapping[str, tuple[int, Queue]],
        tallies: Tallies,
        *,
        packs_traced: bool,
    ) -> None:
        """Take the queues by id, with their index in the call. packs_traced: it may publish traced messages."""
        self.handlers: list[Handler] = []
        self.ordered: list[tuple[int, Source]] = []
        self._keys = keys
        self._queues = queues
        self._tallies = tallies
        self._pack = pack_traced if packs_traced else records.pack
        self._args: list[Any] = []
        self._transactions: list[str] = []

    def encode(self, rounds: Sequence[Round], head: Head) -> tuple[Any, ...]:
        """Return the FCALL command of the rounds."""
        for round_ in rounds:
            for work in round_.works.values():
                self._work(work)
            for commit in round_.commits:
                self._once(commit)
            if round_.sends:
                self._sends(round_.sends)
            for placed in round_.heads:
                self._args.append("H")
                self.handlers.append(log_replies.placed(placed, self._tallies))
        own, session = self._keys, head.session
        keys = [own.epoch, own.sessions, own.lane(session), own.lots(session), *own.log[:3]]
        for _, queue in self._queues.values():
            keys.extend(queue.keys)
        keys.extend(self._transactions)
        first = (head.epoch, session, head.sequence, head.deadline_ms, own.wake_channel, len(self._queues))
        return ("FCALL", "ps1_work_timed", len(keys), *keys, *first, *self._args)

    def _work(self, work: Work) -> None:
        args, tallies = self._args, self._tallies
        index = self._queues[work.queue.qid][0]
        if work.notes:  # before operations that end the lease
            _encode_notes(index, work.notes, args)
            self.handlers.append(outcomes.noted(work, tallies))
        if work.acks:
            args += ("A", index, len(work.acks))
            for (lot, entry), (size, mask, count) in work.acks.items():
                args += (lot, entry, size, mask, count)
            self.handlers.append(outcomes.acked(work, tallies))
        if work.returns:
            _encode_returns(index, work.returns, args)
            self.handlers.append(outcomes.returned(work, tallies))
        if work.rejects:
            _encode_rejects(index, work.rejects, args)
            self.handlers.append(outcomes.rejected(work, tallies))
        for bury in work.buries:
            args += ("B", index, bury.origin, 1, bury.reason, bury.error, bury.record)
            self.handlers.append(outcomes.buried(work.queue, bury, tallies))
        if work.publishes:
            self._publishes(index, work)
        if work.takes:
            args += ("T", index, sum(take.want for take in work.takes), TAKE_BYTES)
            self.handlers.append(outcomes.taken(work, tallies))
        if work.counts:
            args += ("C", index)
            self.handlers.append(outcomes.counted(work, tallies))

    def _publishes(self, index: int, work: Work) -> None:
        """Pack consecutive publishes with the same origin into shared entries, across connections."""
        args, publishes = self._args, work.publishes
        start = 0
        while start < len(publishes):
            first = publishes[start]
            end = start + 1
            while (
                end < len(publishes)
                and publishes[end].origin == first.origin
                and publishes[end].holder == first.holder
                and publishes[end].in_order is first.in_order
            ):
                end += 1
            group = publishes[start:end]
            run = first.records if len(group) == 1 else [record for p in group for record in p.records]
            entries = self._pack(run)
            verb = "P"
            if first.in_order is not None:
                verb = "O"
                self.ordered.append((len(self.handlers), first.in_order))
            args += (verb, index, first.origin, first.holder, len(entries))
            for entry in entries:
                args += entry
            self.handlers.append(outcomes.published(work.queue, group, entries, self._tallies))
            start = end

    def _once(self, operation: OnceOnly) -> None:
        match operation:
            case Commit():
                self._commit(operation)
            case IdempotentPublish():
                self._publish_once(operation)
            case _:
                self._request(operation)
                self.handlers.append(requested(operation, self._tallies))
                return
        self.handlers.append(once_replies.once(operation, self._tallies))

    def _commit(self, commit: Commit) -> None:
        args = self._args
        key = self._key(self._keys.transaction(commit.identifier))
        args += ("X", key, commit.keep_ms, commit.digest, len(commit.parts))
        for part in commit.parts:
            merged = merge(part.deliveries)
            entries = self._pack(part.records) if part.records else []
            args += (self._queues[part.queue.qid][0], len(merged), part.origin, part.holder)
            for group in merged:
                args += group
            args.append(len(entries))
            for packed in entries:
                args += packed

    def _publish_once(self, publish: IdempotentPublish) -> None:
        own, queue = self._keys, self._queues[publish.queue.qid][0]
        origin, record = publish.origin, publish.record
        match publish.identity:
            case JournalNumber(journal, number):
                key = self._key(own.journal(journal))
                self._args += ("U", key, queue, number, origin, publish.reason, publish.error)
            case DeliveryToken(token, keep_ms):
                self._args += ("W", self._key(own.fate(token)), keep_ms, queue, origin)
            case RequestId(request, keep_ms):
                self._args += ("Q", self._key(own.request(request)), keep_ms, queue, "push", origin)
        self._args += (1, len(record) - 4, record)

    def _request(self, request: Request) -> None:
        queue, key = self._queues[request.queue.qid][0], self._key(self._keys.request(request.request))
        if isinstance(request, Pull):
            self._args += ("Q", key, request.keep_ms, queue, "pull", request.largest)
        else:
            session = request.session
            lots = self._key(self._keys.lots(session)) if session else 0
            self._args += ("Q", key, 0, queue, "done", session, lots)

    def _key(self, key: str) -> int:
        """Add a key after those of the queues and return its index."""
        self._transactions.append(key)
        return FIRST_QUEUE + 8 * len(self._queues) + len(self._transactions)

    def _sends(self, sends: list[Send]) -> None:
        """Pack lines of many connections into shared entries; one operation per version of the bindings."""
        start = 0
        while start < len(sends):
            end, bindings = start + 1, sends[start].bindings
            while (
                end < len(sends)
                and sends[end].bindings == bindings
                and sends[end].origin == sends[start].origin
            ):
                end += 1
            parts = _join(sends[start:end])
            self._args += ("L", bindings, sends[start].origin, len(parts))
            for part in parts:
                first = part[0]
                block = first.block if len(part) == 1 else b"".join([send.block for send in part])
                count = first.count if len(part) == 1 else sum(send.count for send in part)
                self._args += (count, block, len(first.copies))
                for queue, record in first.copies:
                    self._args += (self._queues[queue.qid][0], record)
            self.handlers.append(log_replies.sent(parts, self._tallies))
            start = end


def _join(sends: list[Send]) -> list[list[Send]]:
    """Group consecutive sends that share an entry: they have no copies and fit into LOG_ENTRY octets."""
    parts: list[list[Send]] = []
    size = 0
    for send in sends:
        if send.copies or not parts or parts[-1][0].copies or size + len(send.block) > LOG_ENTRY:
            parts.append([send])
            size = len(send.block)
        else:
            parts[-1].append(send)
            size += len(send.block)
    return parts


def _encode_returns(index: int, returns: list[Return], args: list[Any]) -> None:
    args += ("R", index, sum(r.delivery.count for r in returns))
    for r in returns:
        d = r.delivery
        for position in range(d.start, d.start + d.count):
            args += (d.lot, d.entry, position, "end" if r.to_end else "front", int(r.failed), r.error)


def _encode_notes(index: int, notes: list[Note], args: list[Any]) -> None:
    args += ("N", index, sum(note.delivery.count for note in notes))
    for note in notes:
        d = note.delivery
        for position in range(d.start, d.start + d.count):
            args += (d.lot, d.entry, position, note.text)


def _encode_rejects(index: int, rejects: list[Reject], args: list[Any]) -> None:
    args += ("J", index, sum(r.delivery.count for r in rejects))
    for r in rejects:
        d = r.delivery
        for position in range(d.start, d.start + d.count):
            args += (d.lot, d.entry, position, r.reason, r.error)

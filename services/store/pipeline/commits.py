"""What is done once, whoever repeats it: commits, and single messages under an identifier or a number.

Here is also what all verbs need; the others are in `verbs`.
"""

from __future__ import annotations

from collections.abc import Sequence

from services.store.model.errors import AckLevelLost, DomainMismatch, StoreError
from services.store.model.keys import DomainKeys
from services.store.model.operations import Commit, Done, Numbered, Part, Phase, Source, Watched
from services.store.model.queues import Queue
from services.store.model.requests import Once, Outcome
from services.store.pipeline.tallies import Tallies
from services.store.pipeline.waiting import Waiting

MAX_NUMBER = 1 << 53  # Lua's numbers are exact up to here
KEEP_TRANSACTIONS_MS = 24 * 3600 * 1000  # how long an applied transaction id is remembered


class Commits:
    def __init__(self, keys: DomainKeys) -> None:
        self.keys = keys
        self.tallies = Tallies(self.count_refusal)
        self.waiting = Waiting(keys, self.tallies)
        self._call_for = self.waiting.call_for
        self._may_refuse = True  # False: `refuses` would answer None, so nobody asks

    def refuses(self) -> StoreError | None:
        raise NotImplementedError

    def count_refusal(self, error: StoreError, number: int = 1) -> None:
        raise NotImplementedError

    def _refusal(
        self, source: Source, used: Sequence[Queue] = (), goals: Sequence[tuple[Queue, int]] = ()
    ) -> StoreError | None:
        """Why nothing can be done now, or the source may not use one of the queues, or nothing be put into a goal.

        goals: with how many messages are to be put in.
        """
        into = [queue for queue, _ in goals]
        error, blamed = self.refuses(), next((queue for queue in (*used, *into)), None)
        for queue in (*used, *into):
            if error is None:
                error, blamed = source.refusal(queue), queue
        for queue in into:
            if error is None and queue.unkept:
                error, blamed = AckLevelLost(), queue
        if error is not None:
            self.tallies.of(blamed).refuse(error, 1)
            self.tallies.refuse_goals(goals)
        return error

    def commit(
        self,
        source: Source,
        identifier: str,
        parts: list[Part],
        done: Done,
        keep_ms: int = KEEP_TRANSACTIONS_MS,
        digest: str = "",
    ) -> None:
        """Settles and publishes over several queues, all or nothing; an identifier is applied once, ever.

        With a digest, an identifier that was applied with another one is answered BatchDiffers.

        Answers LeaseLost, QueueUnknown, QueueFull, QueuePaused or StoreFull when one part cannot be done: then
        nothing was. Raises DomainMismatch for queues of another domain.
        """
        self._commit(source, Commit(identifier, parts, keep_ms, digest, lambda told: done(_error(told))))

    def publish_once(
        self,
        source: Source,
        identifier: str,
        queue: Queue,
        record: bytes,
        origin: str,
        holder: str,
        digest: str,
        keep_ms: int,
        done: Once,
    ) -> None:
        """Puts one record in under an identifier, which is remembered for so long: done(STORED), or AGAIN if it was.

        It is a commit, and shares its identifiers: begin them with a word of your own. holder as in `publish`; digest
        as in `commit`. Answers BatchDiffers, QueueUnknown, QueueFull, ReservationLost, ...: nothing was stored.
        """
        parts = [Part(queue, [], [record], origin, holder)]
        self._commit(source, Commit(identifier, parts, keep_ms, digest, done))

    def publish_numbered(
        self,
        source: Source,
        journal: str,
        number: int,
        queue: Queue,
        record: bytes,
        origin: str,
        done: Once,
        *,
        reason: str = "",
        error: str = "",
    ) -> None:
        """Puts one record in under a number of its journal: done(STORED), or AGAIN if the journal was as far before.

        Numbers begin with 1 and may have gaps; whoever has several under way makes sure that none is refused before a
        higher one is stored. With a reason the record goes to the queue's dead letters instead, with the error.
        """
        if not 1 <= number <= MAX_NUMBER:
            raise ValueError(f"numbers of a journal are from 1 to {MAX_NUMBER}, unlike {number}")
        refused = self._refusal(source, goals=[(queue, 0 if reason else 1)])
        if refused is not None:
            done(refused)
            return
        call = self._call_for(1, len(record), 0)
        operation = Numbered(journal, number, queue, record, origin, reason, error, done)
        call.place(source, Phase.COMMIT).commits.append(operation)
        call.touch(queue)

    def publish_watched(
        self, source: Source, token: str, queue: Queue, record: bytes, origin: str, keep_ms: int, done: Once
    ) -> None:
        """Puts one record in, done(STORED); the store tells under the token what becomes of it (`Watch`).

        For so long only, unless whoever waits keeps asking; each message has a token of its own.
        """
        refused = self._refusal(source, goals=[(queue, 1)])
        if refused is not None:
            done(refused)
            return
        call = self._call_for(1, len(record), 0)
        operation = Watched(self.keys.fate(token), keep_ms, queue, record, origin, done)
        call.place(source, Phase.COMMIT).commits.append(operation)
        call.touch(queue)

    def _commit(self, source: Source, commit: Commit) -> None:
        parts = commit.parts
        refused = self._refusal(
            source, goals=[(part.queue, len(part.records)) for part in parts if part.records]
        )
        if refused is not None:
            commit.done(refused)
            return
        if any(part.queue.domain != self.keys.domain for part in parts):
            raise DomainMismatch
        size = sum(len(record) for part in parts for record in part.records)
        call = self._call_for(sum(len(part.records) for part in parts), size, 0, len(parts))
        call.place(source, Phase.COMMIT).commits.append(commit)
        for part in parts:
            call.touch(part.queue)


def _error(told: Outcome | StoreError) -> StoreError | None:
    return told if isinstance(told, StoreError) else None

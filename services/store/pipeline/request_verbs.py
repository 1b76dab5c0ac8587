"""The verbs of a ring's requests: put in, taken and settled under an id, once, whoever repeats it (ring.md 5.4)."""

from __future__ import annotations

from services.store.model.client import OURSELVES
from services.store.model.errors import StoreError
from services.store.model.operations import Phase, Source
from services.store.model.queues import Queue
from services.store.model.requests import (
    Held,
    Nothing,
    Once,
    Pull,
    Pulled,
    Pulls,
    Push,
    Request,
    Settle,
    Settlement,
    Settles,
    check_id,
)
from services.store.pipeline.commits import Commits


class RequestVerbs(Commits):
    """keep_ms: how long it is remembered what came of the id. ValueError for what is no id."""

    def push_once(
        self,
        source: Source,
        request: bytes,
        queue: Queue,
        record: bytes,
        origin: str,
        keep_ms: int,
        done: Once,
    ) -> None:
        """Puts one record in: done(STORED), or AGAIN if it was before.

        Refused is refused: who repeats the id is told QueueFull, QueuePaused, MessageTooLarge or QueueReserved again,
        whatever has become of the queue. Not so QueueUnknown, and what is said of the whole store (StoreUnavailable,
        StoreFull, StoreEvicts, AckLevelLost): nothing is remembered then. BatchDiffers: the id is of a pull.
        """
        check_id(request)
        refused = self._refusal(source, goals=[(queue, 1)])
        if refused is not None:
            done(refused)
            return
        self._ask(source, Push(request, keep_ms, queue, record, origin, done), len(record))

    def pull_once(
        self, source: Source, request: bytes, queue: Queue, largest: int, keep_ms: int, done: Pulls
    ) -> None:
        """Leases one message: done(Pulled), or Nothing. Who repeats the id gets the same one while it is leased.

        The lease is this process's, and its to release if nobody settles it. A message whose body has more octets than
        `largest` stays where it is: MessageTooLarge, and so for who repeats the id. Nothing.EMPTY is remembered for ten
        minutes at most. Of a queue that delivers at most once it is settled already. BatchDiffers: the id is of a push.
        """
        check_id(request)
        refused = self._refusal(source, [queue])
        if refused is not None:
            done(refused)
            return

        def pulled(told: Pulled | Nothing | StoreError) -> None:
            if told is Nothing.LOOKED:
                self.pull_once(source, request, queue, largest, keep_ms, done)
            elif isinstance(told, Pulled) and queue.at_most_once:
                self._settle_first(request, told, done)
            else:
                done(told)

        # what it may answer counts as much as what it would bring
        self._ask(source, Pull(request, keep_ms, queue, largest, pulled), largest)

    def _settle_first(self, request: bytes, pulled: Pulled, done: Pulls) -> None:
        """At most once: of all who have it, the one who settles it may show it."""

        def settled(told: Settlement | StoreError) -> None:
            if told is Settlement.SETTLED:
                pulled.delivery.settled = True
                done(pulled)
            else:
                done(told if isinstance(told, StoreError) else Nothing.EXPIRED)

        self.settle_once(Source(OURSELVES), request, pulled.delivery.queue, settled)

    def settle_once(self, source: Source, request: bytes, queue: Queue, done: Settles) -> None:
        """Settles what the pull of this id leased, whichever process leases it."""
        check_id(request)
        self._settle(source, request, queue, "", done)

    def _settle(self, source: Source, request: bytes, queue: Queue, session: str, done: Settles) -> None:
        refused = self.refuses()
        if refused is not None:
            self.tallies.of(queue).refuse(refused, 1)
            done(refused)
            return

        def settled(told: Settlement | Held | StoreError) -> None:
            if isinstance(told, Held):
                self._settle(source, request, queue, told.session, done)
            else:
                done(told)

        self._ask(source, Settle(request, queue, session, settled), 0)

    def _ask(self, source: Source, request: Request, size: int) -> None:
        call = self._call_for(1, size, 0)
        call.place(source, Phase.COMMIT).commits.append(request)
        call.touch(request.queue)

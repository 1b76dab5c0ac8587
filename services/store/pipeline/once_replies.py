"""Reply handlers of idempotent operations: commits, and single messages with an idempotency key."""

from __future__ import annotations

from typing import Any

from services.store.model.errors import StoreError, StoreFault, refusal
from services.store.model.operations import Commit, IdempotentPublish
from services.store.model.requests import Outcome
from services.store.pipeline.outcomes import Handler, failure, notify
from services.store.pipeline.tallies import Tallies, queue_of

Once = Commit | IdempotentPublish


def once(operation: Once, tallies: Tallies) -> Handler:
    """Return the handler of one commit or idempotent publish."""

    def handle(reply: Any) -> None:
        def count(error: StoreError, _: int) -> None:
            tallies.refuse_once(operation, error, queue_of(operation))

        failed = failure(reply, count, 1)
        if failed is not None:
            notify(operation.done, failed)
        elif reply[0] == b"DONE":
            _count(operation, tallies)
            notify(operation.done, Outcome.STORED)
        elif reply[0] == b"AGAIN":
            notify(operation.done, Outcome.AGAIN)
        elif reply[0] == b"FAILED":
            notify(operation.done, _refused(operation, reply, tallies))
        else:
            notify(operation.done, StoreFault(f"unknown reply to a commit: {reply!r}"))

    return handle


def _refused(operation: Once, reply: Any, tallies: Tallies) -> StoreError:
    """Count a refusal {FAILED, why, part} with the queue of that part, and return it."""
    queue = queue_of(operation)
    if isinstance(operation, Commit) and operation.parts:
        queue = operation.parts[reply[2]].queue
    error = refusal(reply[1])
    tallies.refuse_once(operation, error, queue)
    return error


def _count(operation: Once, tallies: Tallies) -> None:
    """Count an operation that was applied."""
    match operation:
        case Commit(parts=parts):
            for part in parts:
                if part.records:
                    octets = sum(map(len, part.records)) - 4 * len(part.records)
                    tallies.accept(part.queue, len(part.records), octets)
                if part.deliveries:
                    tallies.of(part.queue).acked += sum(d.count for d in part.deliveries)
        case IdempotentPublish(reason=reason) if reason:
            tallies.of(operation.queue).rejected += 1
        case IdempotentPublish():
            tallies.accept(operation.queue, 1, len(operation.record) - 4)

"""Reply handlers of the text service's log: lines with their copies for queues, and places in the log."""

from __future__ import annotations

from typing import Any

from services.store.model.errors import BindingsChanged, StoreError, StoreFault, refusal, refused_as
from services.store.model.operations import Placed, Send
from services.store.pipeline.outcomes import Count, Handler, failure, notify
from services.store.pipeline.tallies import Tallies


def _refused(name: bytes, count: Count) -> StoreError:
    """Return why one group of sends was refused; log and count a fault."""
    fault = failure(name, count, 1) if name.startswith(b"FAULT") else None
    return fault or refusal(name)


def sent(parts: list[list[Send]], tallies: Tallies) -> Handler:
    """Return the handler of groups of sends, each group one log entry."""

    def handle(reply: Any) -> None:
        count = tallies.of(None).refuse
        whole: StoreError | None = None
        refused: dict[int, StoreError] = {}
        if isinstance(reply, bytes):
            whole = refused_as(reply) or failure(reply, count, sum(s.count for part in parts for s in part))
        elif isinstance(reply, list):
            refused = {reply[i]: _refused(reply[i + 1], count) for i in range(0, len(reply), 2)}
        for index, part in enumerate(parts):
            error = whole or refused.get(index)
            for send in part:
                if error is None:
                    for queue, record in send.copies:
                        tallies.accept(queue, 1, len(record) - 4)
                elif not isinstance(error, BindingsChanged | StoreFault):
                    count(error, send.count)
                notify(send.done, error)

    return handle


def placed(placed: Placed, tallies: Tallies) -> Handler:
    """Return the handler of a question for the end of the log."""

    def handle(reply: Any) -> None:
        text = reply.decode()
        fault = failure(reply, tallies.of(None).refuse, 1) if text.startswith("FAULT") else None
        notify(placed, fault or text)

    return handle

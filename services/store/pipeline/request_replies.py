"""Reply handlers of pulls and settlements by request id (lua/ring_requests.lua)."""

from __future__ import annotations

from typing import Any

from services.store.model import delivery
from services.store.model.errors import StoreError, StoreFault, refusal
from services.store.model.requests import Held, Nothing, Pull, Pulled, Request, Settle, Settlement
from services.store.pipeline.outcomes import Handler, failure, notify
from services.store.pipeline.tallies import Tallies

NOTHING = {b"EMPTY": Nothing.EMPTY, b"EXPIRED": Nothing.EXPIRED, b"MORE": Nothing.RETRY}
SETTLEMENTS = {
    b"DONE": Settlement.SETTLED,
    b"AGAIN": Settlement.AGAIN,
    b"EXPIRED": Settlement.EXPIRED,
    b"UNKNOWN": Settlement.UNKNOWN,
}


def requested(request: Request, tallies: Tallies) -> Handler:
    """Return the handler of one request."""
    match request:
        case Pull():
            return lambda reply: notify(request.done, _pulled(request, reply, tallies))
        case Settle():
            return lambda reply: notify(request.done, _settled(request, reply, tallies))


def _pulled(pull: Pull, reply: Any, tallies: Tallies) -> Pulled | Nothing | StoreError:
    failed = failure(reply, tallies.of(pull.queue).refuse, 1)
    if failed is not None:
        return failed
    if reply[0] == b"DONE":
        tallies.give(pull.queue, reply)
    if reply[0] in (b"DONE", b"AGAIN"):
        (found,) = delivery.parse(pull.queue, reply)
        return Pulled(found, reply[0] == b"AGAIN")
    if reply[0] == b"FAILED":
        error = refusal(reply[1])
        tallies.of(pull.queue).refuse(error, 1)
        return error
    return NOTHING.get(reply[0]) or StoreFault(f"unknown reply to a pull: {reply!r}"[:200])


def _settled(settle: Settle, reply: Any, tallies: Tallies) -> Settlement | Held | StoreError:
    tally = tallies.of(settle.queue)
    failed = failure(reply, tally.refuse, 1)
    if failed is not None:
        return failed
    if reply[0] == b"DONE":
        tally.acked += 1
    if reply[0] == b"HELD":
        return Held(reply[1].decode())
    return SETTLEMENTS.get(reply[0]) or StoreFault(f"unknown reply to a settlement: {reply!r}"[:200])

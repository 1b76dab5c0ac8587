"""Handlers of requests: each makes of one operation's reply what its asker waits for (lua/requests.lua)."""

from __future__ import annotations

from typing import Any

from services.store import delivery
from services.store.errors import StoreError, StoreFault, refusal
from services.store.outcomes import Count, Handler, failure, once, tell
from services.store.requests import Held, Nothing, Pull, Pulled, Push, Request, Settle, Settlement

NOTHING = {b"EMPTY": Nothing.EMPTY, b"EXPIRED": Nothing.EXPIRED, b"MORE": Nothing.LOOKED}
SETTLEMENTS = {
    b"DONE": Settlement.SETTLED,
    b"AGAIN": Settlement.AGAIN,
    b"EXPIRED": Settlement.EXPIRED,
    b"UNKNOWN": Settlement.UNKNOWN,
}


def requested(request: Request, count: Count) -> Handler:
    match request:
        case Push():
            return once(request, count)
        case Pull():
            return lambda reply: tell(request.done, _pulled(request, reply, count))
        case Settle():
            return lambda reply: tell(request.done, _settled(reply, count))


def _pulled(pull: Pull, reply: Any, count: Count) -> Pulled | Nothing | StoreError:
    failed = failure(reply, count, 1)
    if failed is not None:
        return failed
    if reply[0] in (b"DONE", b"AGAIN"):
        (found,) = delivery.parse(pull.queue, reply)
        return Pulled(found, reply[0] == b"AGAIN")
    if reply[0] == b"FAILED":
        error = refusal(reply[1])
        count(error, 1)
        return error
    return NOTHING.get(reply[0]) or StoreFault(f"a pull was answered with {reply!r}"[:200])


def _settled(reply: Any, count: Count) -> Settlement | Held | StoreError:
    failed = failure(reply, count, 1)
    if failed is not None:
        return failed
    if reply[0] == b"HELD":
        return Held(reply[1].decode())
    return SETTLEMENTS.get(reply[0]) or StoreFault(f"a settlement was answered with {reply!r}"[:200])

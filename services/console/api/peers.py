"""Peers: list, look at, make, change, delete."""

from __future__ import annotations

from typing import Any

from services.console.api.queues import OWNER
from services.console.detail import changed
from services.console.etags import etag_of, must_be_new, must_match, peer_etag
from services.console.operations import Answer, Call
from services.console.paging import page_of
from services.console.problems import Problem, bad_request
from services.store.decided import decided
from services.store.peer import Peer, Unreadable, to_peer_document
from services.store.rqp_binding import check_peer_name

LIST = "peers"


async def list_(call: Call) -> Answer:
    found = await call.console.store.peers.all()
    return Answer(page_of(LIST, found, call.query, lambda peer: peer.name, _told))


async def show(call: Call) -> Answer:
    peer = await _there(call)
    return Answer(_told(peer), headers={"ETag": _etag(peer)})


async def put(call: Call) -> Answer:
    """Makes it, or replaces the document that the caller saw.

    Known weakness: between our look and the change another program may change the document, which is lost then.
    """
    name, there = _name(call), await _find(call)
    must_be_new(call.headers, there is not None)
    if there is not None or "If-Match" in call.headers:
        must_match(call.headers, _etag(there) if there is not None else None)
    call.detail.update(changed(there.spec if isinstance(there, Peer) else None, call.body))
    with decided():
        is_new = await call.console.store.peers.apply(name, call.body, OWNER)
    peer = Peer(name, call.body, OWNER)
    headers = {"ETag": peer_etag(peer)}
    if is_new:
        headers["Location"] = call.request.rel_url.raw_path
    return Answer(_told(peer), 201 if is_new else 200, headers)


async def delete(call: Call) -> Answer:
    must_match(call.headers, _etag(await _there(call)))
    with decided():
        is_gone = await call.console.store.peers.delete(call.path["name"])
    if not is_gone:
        raise _unknown(call.path["name"])
    return Answer(status=204)


async def _there(call: Call) -> Peer | Unreadable:
    found = await _find(call)
    if found is None:
        raise _unknown(call.path["name"])
    return found


async def _find(call: Call) -> Peer | Unreadable | None:
    """Also one that cannot be read: it can be replaced, and deleted."""
    return next(
        (peer for peer in await call.console.store.peers.all() if peer.name == call.path["name"]), None
    )


def _unknown(name: str) -> Problem:
    return Problem(404, "peer_unknown", f"there is no peer {name!r}")


def _etag(peer: Peer | Unreadable) -> str:
    if isinstance(peer, Unreadable):
        return etag_of("unreadable", peer.name, peer.owner, peer.problem)
    return peer_etag(peer)


def _told(peer: Peer | Unreadable) -> dict[str, Any]:
    if isinstance(peer, Unreadable):
        return {"name": peer.name, "owner": peer.owner, "spec": None, "unreadable": peer.problem}
    return {
        "name": peer.name,
        "owner": peer.owner,
        "spec": to_peer_document(peer)["spec"],
        "unreadable": None,
    }


def _name(call: Call) -> str:
    try:
        return check_peer_name(call.path["name"])
    except ValueError as error:
        raise bad_request(str(error), [("name", str(error))]) from None

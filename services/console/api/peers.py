"""Handlers of peers."""

from __future__ import annotations

from typing import Any, NamedTuple

from services.console.api.queues import OWNER
from services.console.audit.detail import changed, made
from services.console.contract.etags import (
    has_changed,
    must_be_new,
    must_match,
    peer_etag,
    unreadable_peer_etag,
)
from services.console.contract.problems import Problem, bad_request
from services.console.core.route import Answer, Call
from services.console.queries.paging import page_of
from services.store.catalogue import read
from services.store.model import Peer, PeerChanged, PeerSpec, Unreadable, check_peer_name, to_peer_document

LIST = "peers"


async def list_(call: Call) -> Answer:
    """List peers by name."""
    found = await call.console.store.peers.all()
    return Answer(page_of(LIST, found, call.query, lambda peer: peer.name, _document))


async def show(call: Call) -> Answer:
    """Show a peer."""
    peer, etag, _ = await _must_find(call)
    return Answer(_document(peer), headers={"ETag": etag})


async def put(call: Call) -> Answer:
    """Create a peer, or replace the document that matches If-Match."""
    name, found = _name(call), await _find(call)
    must_be_new(call.headers, found is not None)
    if found is not None or "If-Match" in call.headers:
        must_match(call.headers, found.etag if found is not None else None)
    call.detail.update(_audit_detail(found, call.body))
    seen = found.document if found is not None else b""
    try:
        is_new = await call.console.store.peers.apply(name, call.body, OWNER, seen=seen)
    except PeerChanged:  # since it was read
        raise has_changed(None) from None
    peer = Peer(name, call.body, OWNER)
    headers = {"ETag": peer_etag(peer)}
    if is_new:
        headers["Location"] = call.request.rel_url.raw_path
    return Answer(_document(peer), 201 if is_new else 200, headers)


async def delete(call: Call) -> Answer:
    """Delete a peer."""
    found = await _must_find(call)
    must_match(call.headers, found.etag)
    try:
        await call.console.store.peers.delete(call.path["name"], seen=found.document)
    except PeerChanged:
        raise has_changed(None) from None
    return Answer(status=204)


class _Found(NamedTuple):
    peer: Peer | Unreadable
    etag: str
    document: bytes


async def _must_find(call: Call) -> _Found:
    found = await _find(call)
    if found is None:
        name = call.path["name"]
        raise Problem(404, "peer_unknown", f"peer {name!r} does not exist")
    return found


async def _find(call: Call) -> _Found | None:
    name = call.path["name"]
    document = await call.console.store.peers.document(name)
    if not document:
        return None
    peer = read(name, document)
    etag = peer_etag(peer) if isinstance(peer, Peer) else unreadable_peer_etag(name, document)
    return _Found(peer, etag, document)


def _audit_detail(found: _Found | None, spec: PeerSpec) -> dict[str, Any]:
    if found is None:
        return made(spec)
    return changed(found.peer.spec if isinstance(found.peer, Peer) else None, spec)


def _document(peer: Peer | Unreadable) -> dict[str, Any]:
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

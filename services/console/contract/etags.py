"""ETags of documents, and preconditions of changes (RFC 9110, 13.1)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from services.console.contract.problems import Problem
from services.store import Queue
from services.store.model import Peer, to_document

TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
LIST = re.compile(rf"\s*{TAG.pattern}\s*(?:,\s*{TAG.pattern}\s*)*")
ANY = "*"


def etag_of(*parts: object) -> str:
    """Return an ETag of the parts' JSON."""
    text = json.dumps(parts, sort_keys=True).encode()
    return f'"{hashlib.sha256(text).hexdigest()[:32]}"'


def queue_etag(queue: Queue) -> str:
    """Return the ETag of a queue: its ID, owner and document, but not its counters."""
    return etag_of("queue", queue.qid, queue.owner, to_document(queue.name, queue.spec)["spec"])


def unreadable_etag(queue: Queue, document: bytes) -> str:
    """Return the ETag of a queue whose document cannot be read."""
    return etag_of("unreadable", queue.qid, hashlib.sha256(document).hexdigest())


def peer_etag(peer: Peer) -> str:
    """Return the ETag of a peer."""
    plain = peer.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return etag_of("peer", peer.name, peer.owner, plain)


def unreadable_peer_etag(name: str, document: bytes) -> str:
    """Return the ETag of a peer whose document cannot be read."""
    return etag_of("unreadable peer", name, hashlib.sha256(document).hexdigest())


def must_match(headers: Mapping[str, str], current: str | None) -> None:
    """Check If-Match. current: the document's ETag, None if there is no document.

    Raises Problem: 428 without the header, 412 if it does not match, 400 if it is malformed.
    """
    given = headers.get("If-Match")
    if given is None:
        text = "If-Match is required: send the ETag of the document, or * for any"
        raise Problem(428, "precondition_required", text)
    if current is None or not _matches(given, current):
        raise has_changed(current)


def must_be_new(headers: Mapping[str, str], exists: bool) -> bool:
    """Return whether the request is `If-None-Match: *`, to create only. Raises Problem 412 if the document exists."""
    given = headers.get("If-None-Match")
    if given is None:
        return False
    if given.strip() != ANY:
        raise Problem(400, "bad_request", "If-None-Match must be * here, to create only")
    if exists:
        raise Problem(412, "precondition_failed", "it exists already")
    return True


def has_changed(current: str | None) -> Problem:
    """Return the problem for a precondition that failed."""
    text = "the document was changed or deleted: read it again"
    return Problem(412, "precondition_failed", text, headers={"ETag": current} if current else {})


def if_none_match(given: str | None, current: str) -> bool:
    """Return whether If-None-Match of a read matches, so that 304 suffices."""
    return given is not None and _matches(given, current)


def _matches(given: str, current: str) -> bool:
    """Compare tags. Weak tags count for changes, too: a proxy that compresses, as nginx does, weakens ours.

    RFC 9110 (13.1.1) requires strong ones, but ours identify a document octet for octet even then.
    """
    if given.strip() == ANY:
        return True
    if not LIST.fullmatch(given):
        raise Problem(400, "bad_request", 'malformed ETag: write it in quotes, as in "6f1e...", or *')
    return current in (tag.removeprefix("W/") for tag in TAG.findall(given))

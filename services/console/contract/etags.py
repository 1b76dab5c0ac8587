"""ETags of documents, and what `If-Match` and `If-None-Match` ask of a change (RFC 9110, 13.1)."""

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
    """Of everything that makes a document what it is."""
    text = json.dumps(parts, sort_keys=True).encode()
    return f'"{hashlib.sha256(text).hexdigest()[:32]}"'


def queue_etag(queue: Queue) -> str:
    """Of one life of the queue and its document: counters come and go without changing it."""
    return etag_of("queue", queue.qid, queue.owner, to_document(queue.name, queue.spec)["spec"])


def unreadable_etag(queue: Queue, document: bytes) -> str:
    return etag_of("unreadable", queue.qid, hashlib.sha256(document).hexdigest())


def peer_etag(peer: Peer) -> str:
    plain = peer.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return etag_of("peer", peer.name, peer.owner, plain)


def unreadable_peer_etag(name: str, document: bytes) -> str:
    return etag_of("unreadable peer", name, hashlib.sha256(document).hexdigest())


def must_match(headers: Mapping[str, str], current: str | None) -> None:
    """Whoever changes a document says which one he saw. current: None if there is none.

    Raises Problem: 428 if nothing is said, 412 if there is another one, 400 for what is no list of tags.
    """
    given = headers.get("If-Match")
    if given is None:
        text = "say which state you saw: If-Match with its ETag, or * for whatever there is"
        raise Problem(428, "precondition_required", text)
    if current is None or not _names(given, current):
        raise differs(current)


def must_be_new(headers: Mapping[str, str], is_there: bool) -> bool:
    """Whether only a new one may be made: `If-None-Match: *`. Raises Problem."""
    given = headers.get("If-None-Match")
    if given is None:
        return False
    if given.strip() != ANY:
        raise Problem(400, "bad_request", "If-None-Match can only be * here: make it if there is none")
    if is_there:
        raise Problem(412, "precondition_failed", "there is one already")
    return True


def differs(current: str | None) -> Problem:
    text = "it was changed, or deleted, meanwhile: look at it again"
    return Problem(412, "precondition_failed", text, headers={"ETag": current} if current else {})


def names(given: str | None, current: str) -> bool:
    """Whether `If-None-Match` of a question names what there is: then nothing need be sent."""
    return given is not None and _names(given, current)


def _names(given: str, current: str) -> bool:
    """Weak tags count, also where a change depends on it: a proxy that compresses, as nginx does, makes ours weak.

    What RFC 9110 (13.1.1) fears of them is not so of ours: under one of them the document is the same to the letter.
    """
    if given.strip() == ANY:
        return True
    if not LIST.fullmatch(given):
        raise Problem(400, "bad_request", 'write ETags in their quotes, as in "6f1e...", or *')
    return current in (tag.removeprefix("W/") for tag in TAG.findall(given))

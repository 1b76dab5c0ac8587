"""Parse the catalogue's documents of queues: {qid, domain, owner, spec, numbers}, the spec as JSON in JSON.

A document may be unreadable because a newer version or an operator wrote it. It does not affect other queues; if its
id, domain and owner can be read, the queue can be inspected, replaced and deleted.
"""

from __future__ import annotations

import json
import re

from pydantic import ValidationError

from services.store.model.document import is_text
from services.store.model.duration import STORED
from services.store.model.errors import QueueUnreadable
from services.store.model.queues import Queue
from services.store.model.spec import DOMAIN_NAME, STRICTEST, QueueSpec

QID = re.compile("[0-9A-Za-z]+")  # part of keys
DEFAULT_LEVEL = "fsync"  # of documents without an ack level, which older versions stored


def parse(name: str, document: bytes) -> Queue:
    """Parse a document. Raises QueueUnreadable."""
    return queue_of(name, *fields(name, document))


def parse_leniently(name: str, document: bytes) -> tuple[Queue, str]:
    """Parse a document and return (queue, problem); a queue with an unreadable spec gets the default one.

    problem: why the spec cannot be read, or ''. Raises QueueUnreadable if not even the id can be read.
    """
    qid, domain, owner, spec = fields(name, document)
    try:
        return queue_of(name, qid, domain, owner, spec), ""
    except QueueUnreadable as error:
        default = QueueSpec.model_validate({"domain": domain, "ackLevel": DEFAULT_LEVEL}, context=STORED)
        return Queue(name, qid, domain, owner, default), str(error)


def queue_of(name: str, qid: str, domain: str, owner: str, spec: bytes | str) -> Queue:
    """Build a queue from the fields of its document. Raises QueueUnreadable if the spec cannot be read."""
    try:
        read = QueueSpec.model_validate_json(spec, context=STORED)
    except ValidationError as error:
        raise QueueUnreadable(_text(name, faults_of(error))) from error
    if read.ack_level == STRICTEST:
        read = read.model_copy(update={"ack_level": DEFAULT_LEVEL})
    return Queue(name, qid, domain, owner, read)


def fields(name: str, document: bytes) -> tuple[str, str, str, str]:
    """Return qid, domain, owner and spec of a document. Raises QueueUnreadable."""
    try:
        found = json.loads(document)
        qid, domain, owner, spec = found["qid"], found["domain"], found["owner"], found["spec"]
        if not all(isinstance(each, str) and is_text(each) for each in (qid, domain, owner, spec)):
            raise ValueError("qid, domain, owner and spec must be texts")
        if not QID.fullmatch(qid) or not DOMAIN_NAME.fullmatch(domain):
            raise ValueError(f"{qid!r} in domain {domain!r} is not a valid queue id")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise QueueUnreadable(_text(name, repr(error)), is_known=False) from error
    return qid, domain, owner, spec


def _text(name: str, why: str) -> str:
    return f"the document of queue {name!r} in the store cannot be read: {why}"


def faults_of(error: ValidationError) -> str:
    """Return all validation errors with their fields, in one line."""
    faults = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return "; ".join(fault.removeprefix(": ") for fault in faults)

"""A queue's document as the catalogue keeps it: {qid, domain, owner, spec, numbers}, the spec as JSON in JSON.

A newer version, or a hand, may have written what this one cannot read. Such a document hides no other queue: where its
id, its domain and its owner can be read, the queue can be looked at, replaced and deleted.
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

QID = re.compile("[0-9A-Za-z]+")  # it stands in keys
OF_BEFORE = (
    "fsync"  # the ack level of stored documents that name none: they are older than the choice by the store
)


def parse(name: str, document: bytes) -> Queue:
    """Raises QueueUnreadable."""
    return queue_of(name, *fields(name, document))


def parse_leniently(name: str, document: bytes) -> tuple[Queue, str]:
    """The queue, and why its spec cannot be read, or ''; where it cannot, as if its document said nothing.

    So it can be looked at, replaced and deleted. Raises QueueUnreadable where not even its id is known.
    """
    qid, domain, owner, spec = fields(name, document)
    try:
        return queue_of(name, qid, domain, owner, spec), ""
    except QueueUnreadable as error:
        # what it says of the domain is known to be one; `registry` is, too, in what the store holds
        said = QueueSpec.model_validate({"domain": domain, "ackLevel": OF_BEFORE}, context=STORED)
        return Queue(name, qid, domain, owner, said), str(error)


def queue_of(name: str, qid: str, domain: str, owner: str, spec: bytes | str) -> Queue:
    """Raises QueueUnreadable."""
    try:
        read = QueueSpec.model_validate_json(spec, context=STORED)
    except ValidationError as error:
        raise QueueUnreadable(_text(name, faults_of(error))) from error
    if read.ack_level == STRICTEST:
        read = read.model_copy(update={"ack_level": OF_BEFORE})
    return Queue(name, qid, domain, owner, read)


def fields(name: str, document: bytes) -> tuple[str, str, str, str]:
    """qid, domain, owner, spec, as they may stand in keys and answers. Raises QueueUnreadable."""
    try:
        found = json.loads(document)
        qid, domain, owner, spec = found["qid"], found["domain"], found["owner"], found["spec"]
        if not all(isinstance(each, str) and is_text(each) for each in (qid, domain, owner, spec)):
            raise ValueError("qid, domain, owner and spec have to be texts")
        if not QID.fullmatch(qid) or not DOMAIN_NAME.fullmatch(domain):
            raise ValueError(f"{qid!r} in domain {domain!r} is no queue of ours")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise QueueUnreadable(_text(name, repr(error)), is_known=False) from error
    return qid, domain, owner, spec


def _text(name: str, why: str) -> str:
    return f"the document of queue {name!r} in the store cannot be read: {why}"


def faults_of(error: ValidationError) -> str:
    """What is wrong where, in one line."""
    faults = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return "; ".join(fault.removeprefix(": ") for fault in faults)

"""Carry out another node's destroy_queue once per request id (ring.md 5.4, docs/store.md).

Deleting changes the catalogue, so it takes two steps: first the queue's identity is stored under the request id, then
that queue is deleted if it still exists. A repeated request finds the identity, and never deletes a newer queue of the
same name.
"""

from __future__ import annotations

import contextlib

from protos.ring import NO_ID, Frame
from services.queueing import decode_name
from services.ring.error_texts import NOT_OWNER
from services.ring.service import OWNER
from services.store import Queue, Store
from services.store.model import QueueUnknown, is_internal

KEEP_MS = 24 * 3600 * 1000
DESTROY, REFUSED = "destroy ", "refused "  # prefixes of the value under the id


async def destroy(store: Store, frame: Frame) -> str | None:
    """Return '' once the queue is gone, else why it stays; None if there is no such queue here.

    Raises StoreError.
    """
    name = decode_name(frame.queue)
    if is_internal(name):
        return None
    stored = None if frame.request_id == NO_ID else await store.registry.reply_of(frame.request_id)
    queue = await _find(store, name)
    if stored is None:
        if queue is None:
            return None
        stored = DESTROY + queue.qid if queue.owner == OWNER else REFUSED + NOT_OWNER
        if frame.request_id != NO_ID:
            stored = await store.registry.remember_reply(frame.request_id, stored, KEEP_MS)
    if stored.startswith(REFUSED):
        return stored.removeprefix(REFUSED)
    if queue is not None and queue.qid == stored.removeprefix(DESTROY):
        await store.catalogue.delete(queue)
    return ""


async def _find(store: Store, name: str) -> Queue | None:
    with contextlib.suppress(QueueUnknown):
        return await store.catalogue.find(name)
    return None

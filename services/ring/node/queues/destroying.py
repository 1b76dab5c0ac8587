"""destroy_queue of a node that asks around, done once under its request id (ring.md 5.4, docs/store.md).

To delete changes the catalogue, so it takes two steps. Which queue it was is said first; who finds that said deletes
that one, if it is still there, and nothing that was made under its name since.
"""

from __future__ import annotations

import contextlib

from protos.ring import NO_ID, Frame
from services.queueing import decode_name
from services.ring.service import OWNER
from services.ring.words import NOT_OWNER
from services.store import Queue, Store
from services.store.model import QueueUnknown, is_internal

KEEP_MS = 24 * 3600 * 1000
DESTROY, REFUSED = "destroy ", "refused "  # what stands under the id begins so


async def destroy(store: Store, frame: Frame) -> str | None:
    """'' once it is gone, else why it stays; None if there is no such queue here. Raises StoreError."""
    name = decode_name(frame.queue)
    if is_internal(name):
        return None
    said = None if frame.request_id == NO_ID else await store.registry.reply_of(frame.request_id)
    queue = await _find(store, name)
    if said is None:
        if queue is None:
            return None
        said = DESTROY + queue.qid if queue.owner == OWNER else REFUSED + NOT_OWNER
        if frame.request_id != NO_ID:
            said = await store.registry.remember_reply(frame.request_id, said, KEEP_MS)
    if said.startswith(REFUSED):
        return said.removeprefix(REFUSED)
    if queue is not None and queue.qid == said.removeprefix(DESTROY):
        await store.catalogue.delete(queue)
    return ""


async def _find(store: Store, name: str) -> Queue | None:
    with contextlib.suppress(QueueUnknown):
        return await store.catalogue.find(name)
    return None

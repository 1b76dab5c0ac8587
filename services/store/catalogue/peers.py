"""Read and change the peers of the catalogue: systems that messages go to or come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from pydantic import ValidationError

from services.store.catalogue.registry import Registry
from services.store.model.duration import STORED
from services.store.model.errors import PeerChanged, StoreFault, unknown_after_commit
from services.store.model.names import decode_name, encode_name
from services.store.model.peer import Peer, PeerSpec, Unreadable
from services.store.model.queue_document import faults_of
from services.store.model.spec import MAX_NAME_BYTES
from services.store.pipeline.outcomes import notify

NOTICE = "peer ".ljust(MAX_NAME_BYTES + 1)  # prefix of a changed peer's name; longer than any queue's name
Watcher = Callable[[str], None]


class Peers:
    """The peers of one store. Every method raises StoreUnavailable; changes also raise OutcomeUnknown.

    seen: the expected current `document`, b"" for none; if another one is stored, PeerChanged is raised.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._watchers: list[Watcher] = []

    async def apply(self, name: str, spec: PeerSpec, owner: str, *, seen: bytes | None = None) -> bool:
        """Create or replace a peer; return whether it is new. Raises NotInitialised.

        owner: 'file' or 'operator', replaces the former owner.
        """
        plain = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return await self._change("put_peer", name, seen, json.dumps({"owner": owner, "spec": plain}))

    async def _change(self, function: str, name: str, seen: bytes | None, *words: str) -> bool:
        keys = [self._registry.keys.epoch, self._registry.keys.peers]
        expected = () if seen is None else (hashlib.sha1(seen).hexdigest() if seen else "",)
        args = (await self._registry.epoch(), encode_name(name), *words, *expected)
        # a retry after a lost answer would find its own change
        attempts = 2 if seen is None else 1
        reply = await self._registry.link.function(function, keys, *args, attempts=attempts)
        if reply == b"CHANGED":
            raise PeerChanged
        with unknown_after_commit():
            await self._registry.publish_change(NOTICE + name)
        return bool(reply)

    async def all(self) -> list[Peer | Unreadable]:
        """Return all peers by name, including unreadable ones."""
        found = await self._registry.link.call("HGETALL", self._registry.keys.peers)
        return sorted(
            (read(decode_name(found[i]), found[i + 1]) for i in range(0, len(found), 2)),
            key=lambda peer: peer.name,
        )

    async def find(self, name: str) -> Peer | None:
        """Return the peer, or None. Raises StoreFault if it cannot be read."""
        found = await self.document(name)
        peer = read(name, found) if found else None
        if isinstance(peer, Unreadable):
            raise StoreFault(f"the document of peer {name!r} in the store cannot be read: {peer.problem}")
        return peer

    async def document(self, name: str) -> bytes:
        """Return the stored document, for `read` and `seen`; b"" without one."""
        found = await self._registry.link.call("HGET", self._registry.keys.peers, encode_name(name))
        return b"" if found is None else bytes(found)

    async def delete(self, name: str, *, seen: bytes | None = None) -> bool:
        """Delete a peer; return whether it existed. Raises NotInitialised."""
        return await self._change("drop_peer", name, seen)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with the name of each changed peer, or EVERYTHING (see `Catalogue.watch`)."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def changed(self, name: str) -> None:
        """Notify the watchers of a change."""
        for watcher in tuple(self._watchers):
            notify(watcher, name)


def read(name: str, kept: bytes) -> Peer | Unreadable:
    """Parse a document as `Peers.document` returns it."""
    owner, document = _unwrapped(kept)
    try:
        return Peer(name, PeerSpec.model_validate_json(document, context=STORED), owner)
    except ValidationError as error:
        return Unreadable(name, faults_of(error), owner)


def _unwrapped(kept: bytes) -> tuple[str, bytes | str]:
    """Return the owner and the spec; older versions stored the spec alone."""
    try:
        whole = json.loads(kept)
    except ValueError:
        return "", kept
    if not isinstance(whole, dict) or "spec" not in whole:
        return "", kept
    return str(whole.get("owner", "")), json.dumps(whole["spec"])

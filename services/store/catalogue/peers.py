"""The peers that the catalogue knows: systems that messages go to or come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from pydantic import ValidationError

from services.store.catalogue.registry import Registry
from services.store.model.duration import STORED
from services.store.model.errors import PeerChanged, StoreFault
from services.store.model.names import decode_name, encode_name
from services.store.model.peer import Peer, PeerSpec, Unreadable
from services.store.model.queue_document import faults_of
from services.store.model.spec import MAX_NAME_BYTES
from services.store.model.unknown_after_commit import unknown_after_commit
from services.store.pipeline.outcomes import tell

NOTICE = "peer ".ljust(MAX_NAME_BYTES + 1)  # before a peer's name among the changes: too long for any queue's
Watcher = Callable[[str], None]


class Peers:
    """Every method raises StoreUnavailable; those that change something OutcomeUnknown, too.

    seen: the `document` that has to be there still, b"" = none. Else PeerChanged is raised.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._watchers: list[Watcher] = []

    async def apply(self, name: str, spec: PeerSpec, owner: str, *, seen: bytes | None = None) -> bool:
        """Makes it, or changes it to this; True if it is new. Raises NotInitialised.

        owner: who declares it, 'file' or 'operator'; whoever did so before has it no more.
        """
        plain = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return await self._change("put_peer", name, seen, json.dumps({"owner": owner, "spec": plain}))

    async def _change(self, function: str, name: str, seen: bytes | None, *words: str) -> bool:
        keys = [self._registry.keys.epoch, self._registry.keys.peers]
        expected = () if seen is None else (hashlib.sha1(seen).hexdigest() if seen else "",)
        args = (await self._registry.epoch(), encode_name(name), *words, *expected)
        # asked again after an answer that was lost, it would find its own change
        attempts = 2 if seen is None else 1
        reply = await self._registry.link.function(function, keys, *args, attempts=attempts)
        if reply == b"CHANGED":
            raise PeerChanged
        with unknown_after_commit():
            await self._registry.tell(NOTICE + name)
        return bool(reply)

    async def all(self) -> list[Peer | Unreadable]:
        """In the order of their names. One that cannot be read hides no other."""
        found = await self._registry.link.call("HGETALL", self._registry.keys.peers)
        return sorted(
            (read(decode_name(found[i]), found[i + 1]) for i in range(0, len(found), 2)),
            key=lambda peer: peer.name,
        )

    async def find(self, name: str) -> Peer | None:
        """None: there is none. Raises StoreFault if it cannot be read."""
        found = await self.document(name)
        peer = read(name, found) if found else None
        if isinstance(peer, Unreadable):
            raise StoreFault(f"the document of peer {name!r} in the store cannot be read: {peer.problem}")
        return peer

    async def document(self, name: str) -> bytes:
        """As it is kept: for `read`, and for a change to know whether it is still the same; b"" if there is none."""
        found = await self._registry.link.call("HGET", self._registry.keys.peers, encode_name(name))
        return b"" if found is None else bytes(found)

    async def delete(self, name: str, *, seen: bytes | None = None) -> bool:
        """False: there was none. Raises NotInitialised."""
        return await self._change("drop_peer", name, seen)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Tells of each peer that changes, comes or goes: its name, or EVERYTHING; as `Store.watch` does of queues."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def changed(self, name: str) -> None:
        """Tells whoever watches."""
        for watcher in tuple(self._watchers):
            tell(watcher, name)


def read(name: str, kept: bytes) -> Peer | Unreadable:
    """kept: as `Peers.document` has it."""
    owner, document = _unwrapped(kept)
    try:
        return Peer(name, PeerSpec.model_validate_json(document, context=STORED), owner)
    except ValidationError as error:
        return Unreadable(name, faults_of(error), owner)


def _unwrapped(kept: bytes) -> tuple[str, bytes | str]:
    """The owner, and the document; older versions kept the document alone."""
    try:
        whole = json.loads(kept)
    except ValueError:
        return "", kept
    if not isinstance(whole, dict) or "spec" not in whole:
        return "", kept
    return str(whole.get("owner", "")), json.dumps(whole["spec"])

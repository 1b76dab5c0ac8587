"""Store the states of ring nodes for administrators (docs/store.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from services.store.catalogue.registry import Registry
from services.store.model.errors import StoreFault
from services.store.model.names import decode_name, encode_name

KEEP_MS = 24 * 3600 * 1000  # states expire this long after the last write


@dataclass(frozen=True, slots=True)
class RingNode:
    """The stored state of a node."""

    group: int
    name: str
    written_ms: int  # time of the write, by the store's clock (`Store.now_ms`)
    document: dict[str, Any]


class RingNodes:
    """The states of ring nodes. Every method raises StoreUnavailable."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def put(self, group: int, name: str, document: dict[str, Any]) -> None:
        """Store the state of a node, and remove expired ones. Raises NotInitialised, OutcomeUnknown."""
        registry = self._registry
        keys = [registry.keys.epoch, registry.keys.ring_nodes]
        text = json.dumps(document, separators=(",", ":"))
        args = (await registry.epoch(), _field(group, name), text, KEEP_MS)
        await registry.link.function("ring_node", keys, *args)

    async def all(self) -> list[RingNode]:
        """Return all states by group and name, including silent nodes until they expire."""
        found = await self._registry.link.call("HGETALL", self._registry.keys.ring_nodes)
        nodes = [_parse(found[i], found[i + 1]) for i in range(0, len(found), 2)]
        return sorted(nodes, key=lambda node: (node.group, node.name))

    async def remove(self, group: int, name: str) -> bool:
        """Remove the state of a node; return whether there was one."""
        return bool(
            await self._registry.link.call("HDEL", self._registry.keys.ring_nodes, _field(group, name))
        )


def _field(group: int, name: str) -> bytes:
    return b"%d %s" % (group, encode_name(name))


def _parse(field: bytes, value: bytes) -> RingNode:
    group, _, name = field.partition(b" ")
    written, _, text = value.partition(b" ")
    try:
        return RingNode(int(group), decode_name(name), int(written), json.loads(text))
    except ValueError as error:
        raise StoreFault(f"the state of ring node {field!r} in the store cannot be read: {error}") from error

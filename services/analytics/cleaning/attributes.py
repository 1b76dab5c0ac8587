"""Take the texts out of attributes in MessagePack, and put replaced texts back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgpack

SURROGATES = "surrogateescape"  # strings may have any octets


class _Map(list[tuple[Any, Any]]):
    """Pairs in order: keys may become equal by replacement, and no value may be lost."""


class Attributes:
    """The attributes of one message. Raises ValueError for invalid MessagePack."""

    def __init__(self, packed: bytes) -> None:
        tree = msgpack.unpackb(
            packed, object_pairs_hook=_Map, strict_map_key=False, unicode_errors=SURROGATES
        )
        self._packed = packed
        self._nodes = [(node, _text(node)) for node in _nodes(tree)]
        # of strings, octets and numbers in keys and values, at every depth
        self.texts = [text for _, text in self._nodes if text is not None]

    def replaced(self, texts: Iterable[bytes]) -> bytes:
        """Return the attributes packed with these texts; the original octets if nothing changed."""
        if (new := list(texts)) == self.texts:
            return self._packed
        told = iter(new)
        packer = msgpack.Packer(autoreset=False, unicode_errors=SURROGATES)
        for node, text in self._nodes:
            if isinstance(node, _Map):
                packer.pack_map_header(len(node))
            elif isinstance(node, list):
                packer.pack_array_header(len(node))
            else:
                packer.pack(node if text is None else _with(node, text, next(told)))
        return bytes(packer.bytes())


def _nodes(tree: Any) -> Iterator[Any]:
    """Yield the nodes in the order of packing, without recursion, as the nesting may be deep."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, _Map):
            left += [each for pair in reversed(node) for each in reversed(pair)]
        elif isinstance(node, list):
            left += reversed(node)


def _text(node: Any) -> bytes | None:
    match node:
        case bytes():
            return node
        case msgpack.ExtType():
            return bytes(node.data)
        case str() | int() | float() if not isinstance(node, bool):
            return str(node).encode(errors=SURROGATES)
    return None


def _with(node: Any, old: bytes, new: bytes) -> Any:
    """Return the node with a new text; a replaced number becomes a string."""
    if new == old:
        return node
    if isinstance(node, msgpack.ExtType):
        return msgpack.ExtType(node.code, new)
    return new if isinstance(node, bytes) else new.decode(errors=SURROGATES)

"""queues.yaml: a YAML stream of Queue documents, the same that Kubernetes takes. All are checked before any counts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from services.cli.exits import Exit, Failure
from services.kit.layers import explain
from services.store import Queue, QueueDocument, QueueSpec, Store
from services.store.errors import AckLevelRefused, QueueUnknown
from services.store.probe import Promises

OWNER = "file"


class Change(StrEnum):
    """What a document does to the store."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One document: the queue as it should be. `place` says where it was read."""

    place: str
    name: str
    spec: QueueSpec


class _Loader(yaml.SafeLoader):
    """A key that is there twice is a mistake; YAML's own loader takes the second one in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is there twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_documents(path: Path) -> list[Wanted]:
    """Every document of the file ('-' = standard input). Raises Failure with a line for each fault."""
    wanted: list[Wanted] = []
    faults: list[str] = []
    for number, content in enumerate(_load(path), 1):
        if content is None:  # nothing between two ---
            continue
        try:
            document = QueueDocument.model_validate(content)
            wanted.append(Wanted(_place(path, number, content), document.name, document.queue))
        except ValidationError as error:
            lines = explain(error, QueueDocument, None)
            faults += [f"{_place(path, number, content)}: {line.removeprefix(': ')}" for line in lines]
    faults += _twice(wanted)
    if faults:
        raise Failure(Exit.USAGE, "bad_document", "\n".join(faults))
    return wanted


def _load(path: Path) -> list[Any]:
    try:
        text = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return list(yaml.load_all(text, _Loader))
    except OSError as error:
        raise Failure(Exit.USAGE, "bad_document", f"{path} cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise Failure(
            Exit.USAGE, "bad_document", f"{path} is not YAML: {' '.join(str(error).split())}"
        ) from None


def _place(path: Path, number: int, content: Any) -> str:
    metadata = content.get("metadata") if isinstance(content, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{path}: document {number}" + (f" ({name})" if name else "")


def _twice(wanted: list[Wanted]) -> list[str]:
    first: dict[str, str] = {}
    return [
        f"{one.place}: the queue {one.name!r} is declared already in {first[one.name]}"
        for one in wanted
        if first.setdefault(one.name, one.place) != one.place
    ]


async def plan(store: Store, wanted: list[Wanted], owner: str = OWNER) -> list[Change]:
    """What each document would do. Raises Failure with a line for each that the store would refuse."""
    promises = await store.promises()
    changes: list[Change] = []
    refused: list[str] = []
    for one in wanted:
        there = await _find(store, one.name)
        changes.append(_change(one, there, owner))
        if fault := _fault(one, there, promises):
            refused.append(f"{one.place}: {fault}")
    if refused:
        raise Failure(Exit.REFUSED, "document_refused", "\n".join(refused))
    return changes


async def _find(store: Store, name: str) -> Queue | None:
    try:
        return await store.find(name)
    except QueueUnknown:
        return None


def _change(one: Wanted, there: Queue | None, owner: str) -> Change:
    if there is None:
        return Change.CREATED
    return Change.UNCHANGED if there.spec == one.spec and there.owner == owner else Change.CHANGED


def _fault(one: Wanted, there: Queue | None, promises: Promises) -> str:
    if there is not None and there.domain != one.spec.domain:
        return f"spec.domain: the queue is in {there.domain!r} and cannot move: keep it there, or delete it first"
    try:
        promises.check(one.spec.ack_level)
    except AckLevelRefused as error:
        return f"spec.ackLevel: {error}"
    return ""


async def apply(
    store: Store, wanted: list[Wanted], owner: str = OWNER, advance: Callable[[int], None] = lambda _: None
) -> list[Change]:
    """Declares what is new or different; nothing at all if one of them would be refused."""
    changes = await plan(store, wanted, owner)
    await carry_out(store, wanted, changes, owner, advance)
    return changes


async def carry_out(
    store: Store,
    wanted: list[Wanted],
    changes: list[Change],
    owner: str = OWNER,
    advance: Callable[[int], None] = lambda _: None,
) -> None:
    """What was planned. It may be done again after a break: what is there already stays as it is."""
    for one, change in zip(wanted, changes, strict=True):
        if change is not Change.UNCHANGED:
            await store.declare(one.name, one.spec, owner, replace=True)
        advance(1)

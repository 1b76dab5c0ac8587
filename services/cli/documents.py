"""queues.yaml: a YAML stream of Queue and Peer documents, the same that Kubernetes takes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from services.cli.exits import Exit, Failure
from services.kit.layers import explain
from services.store import QueueDocument, QueueSpec
from services.store.peer import PeerDocument, PeerSpec

KINDS = ("Queue", "Peer")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One document: the queue or peer as it should be. `place` says where it was read."""

    place: str
    name: str
    spec: QueueSpec | PeerSpec

    @property
    def kind(self) -> str:
        return "Queue" if isinstance(self.spec, QueueSpec) else "Peer"


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
        place = _place(path, number, content)
        try:
            wanted.append(_read(place, content))
        except Failure as failure:
            faults += [f"{place}: {line}" for line in failure.message.split("\n")]
    faults += _twice(wanted)
    if faults:
        raise Failure(Exit.USAGE, "bad_document", "\n".join(faults))
    return wanted


def _read(place: str, content: Any) -> Wanted:
    """Raises Failure with a line for each fault."""
    kind = content.get("kind", "Queue") if isinstance(content, dict) else "Queue"
    if kind not in KINDS:
        raise Failure(Exit.USAGE, "bad_document", f"kind: must be 'Queue' or 'Peer', not {kind!r}")
    model = PeerDocument if kind == "Peer" else QueueDocument
    try:
        document = model.model_validate(content)
    except ValidationError as error:
        lines = (line.removeprefix(": ") for line in explain(error, model, None))
        raise Failure(Exit.USAGE, "bad_document", "\n".join(lines)) from None
    spec = document.spec if isinstance(document, PeerDocument) else document.queue
    return Wanted(place, document.name, spec)


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
    first: dict[tuple[str, str], str] = {}
    return [
        f"{one.place}: the {one.kind.lower()} {one.name!r} is declared already in {first[one.kind, one.name]}"
        for one in wanted
        if first.setdefault((one.kind, one.name), one.place) != one.place
    ]

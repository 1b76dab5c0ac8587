"""queues.yaml: a YAML stream of Queue and Peer documents, the same that Kubernetes takes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from services.cli.terminal.exits import Exit, Failure
from services.cli.terminal.text import printable
from services.kit.config import describe_errors
from services.outside.document import BadDocument, read_yaml
from services.store import QueueDocument, QueueSpec
from services.store.model import PeerDocument, PeerSpec

KINDS = ("Queue", "Peer")
LISTS = ("List", *(f"{kind}List" for kind in KINDS))


@dataclass(frozen=True, slots=True)
class Wanted:
    """One document: the queue or peer as it should be. `place` says where it was read."""

    place: str
    name: str
    spec: QueueSpec | PeerSpec

    @property
    def kind(self) -> str:
        return "Queue" if isinstance(self.spec, QueueSpec) else "Peer"


def read_documents(path: Path) -> list[Wanted]:
    """Every document of the file ('-' = standard input). Raises Failure with a line for each fault."""
    wanted: list[Wanted] = []
    faults: list[str] = []
    for number, content in enumerate(_load(path), 1):
        if content is None:  # nothing between two ---
            continue
        for item, one in _unwrapped(content):
            place = _place(path, number, item, one)
            try:
                wanted.append(_read(place, one))
            except Failure as failure:
                faults += [f"{place}: {line}" for line in failure.message.split("\n")]
    faults += _twice(wanted)
    if faults:
        raise Failure(Exit.USAGE, "bad_document", "\n".join(faults))
    return wanted


def _unwrapped(content: Any) -> list[tuple[int, Any]]:
    """The documents in a List, as `kubectl get` prints one, from 1 on; (0, itself) for any other document."""
    if not isinstance(content, dict) or content.get("kind") not in LISTS:
        return [(0, content)]
    items = content.get("items")
    return list(enumerate(items, 1)) if isinstance(items, list) else [(0, content)]


def _read(place: str, content: Any) -> Wanted:
    """Raises Failure with a line for each fault."""
    kind = content.get("kind", "Queue") if isinstance(content, dict) else "Queue"
    if kind not in KINDS:
        raise Failure(Exit.USAGE, "bad_document", f"kind: must be 'Queue' or 'Peer', not {kind!r}")
    model = PeerDocument if kind == "Peer" else QueueDocument
    if isinstance(content, dict):  # the API server's, as is everything of metadata but the name
        content = {key: value for key, value in content.items() if key != "status"}
    try:
        document = model.model_validate(content)
    except ValidationError as error:
        lines = (line.removeprefix(": ") for line in describe_errors(error, model, None))
        raise Failure(Exit.USAGE, "bad_document", "\n".join(lines)) from None
    spec = document.spec if isinstance(document, PeerDocument) else document.queue
    return Wanted(place, document.name, spec)


def _load(path: Path) -> list[Any]:
    try:
        text = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return read_yaml(text, any_octets=True)
    except OSError as error:
        raise Failure(Exit.USAGE, "bad_document", f"{path} cannot be read: {error.strerror}") from None
    except BadDocument as error:
        raise Failure(Exit.USAGE, "bad_document", f"{path}: {error}") from None


def _place(path: Path, number: int, item: int, content: Any) -> str:
    metadata = content.get("metadata") if isinstance(content, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return (
        f"{path}: document {number}"
        + (f", item {item}" if item else "")
        + (f" ({printable(str(name))})" if name else "")
    )


def _twice(wanted: list[Wanted]) -> list[str]:
    first: dict[tuple[str, str], str] = {}
    return [
        f"{one.place}: the {one.kind.lower()} {one.name!r} is declared already in {first[one.kind, one.name]}"
        for one in wanted
        if first.setdefault((one.kind, one.name), one.place) != one.place
    ]

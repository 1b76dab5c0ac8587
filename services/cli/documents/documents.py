"""Read queues.yaml: a YAML stream of the Queue and Peer documents that Kubernetes accepts, too."""

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
class Declaration:
    """The desired state of one queue or peer. `place` says where it was read."""

    place: str
    name: str
    spec: QueueSpec | PeerSpec

    @property
    def kind(self) -> str:
        """Return 'Queue' or 'Peer'."""
        return "Queue" if isinstance(self.spec, QueueSpec) else "Peer"


def read_documents(path: Path) -> list[Declaration]:
    """Read every document of the file ('-' = standard input). Raises Failure with a line for each fault."""
    declarations: list[Declaration] = []
    faults: list[str] = []
    for number, content in enumerate(_load(path), 1):
        if content is None:  # an empty document
            continue
        for item, one in _unwrapped(content):
            place = _place(path, number, item, one)
            try:
                declarations.append(_read(place, one))
            except Failure as failure:
                faults += [f"{place}: {line}" for line in failure.message.split("\n")]
    faults += _duplicates(declarations)
    if faults:
        raise Failure(Exit.USAGE, "bad_document", "\n".join(faults))
    return declarations


def _unwrapped(content: Any) -> list[tuple[int, Any]]:
    """Return the items of a List, as `kubectl get` prints one, numbered from 1; (0, itself) for other documents."""
    if not isinstance(content, dict) or content.get("kind") not in LISTS:
        return [(0, content)]
    items = content.get("items")
    return list(enumerate(items, 1)) if isinstance(items, list) else [(0, content)]


def _read(place: str, content: Any) -> Declaration:
    """Parse one document. Raises Failure with a line for each fault."""
    kind = content.get("kind", "Queue") if isinstance(content, dict) else "Queue"
    if kind not in KINDS:
        raise Failure(Exit.USAGE, "bad_document", f"kind: must be 'Queue' or 'Peer', not {kind!r}")
    model = PeerDocument if kind == "Peer" else QueueDocument
    if isinstance(content, dict):  # written by the API server
        content = {key: value for key, value in content.items() if key != "status"}
    try:
        document = model.model_validate(content)
    except ValidationError as error:
        lines = (line.removeprefix(": ") for line in describe_errors(error, model, None))
        raise Failure(Exit.USAGE, "bad_document", "\n".join(lines)) from None
    spec = document.spec if isinstance(document, PeerDocument) else document.queue
    return Declaration(place, document.name, spec)


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


def _duplicates(declarations: list[Declaration]) -> list[str]:
    first: dict[tuple[str, str], str] = {}
    return [
        f"{one.place}: the {one.kind.lower()} {one.name!r} is already declared in {first[one.kind, one.name]}"
        for one in declarations
        if first.setdefault((one.kind, one.name), one.place) != one.place
    ]

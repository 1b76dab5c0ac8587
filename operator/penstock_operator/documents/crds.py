"""The CustomResourceDefinitions. `python -m penstock_operator.documents.crds` prints them; FOLDER: a file each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from penstock_operator.documents.redrive_spec import RedriveSpec
from penstock_operator.documents.rules import PEER_RULES, QUEUE_RULES, REDRIVE_RULES, Rule
from penstock_operator.documents.schema import RULES, Schema, filled_in, structural
from services.store.model import API_VERSION, NamedQueueSpec, PeerSpec

GROUP, _, VERSION = API_VERSION.partition("/")
CATEGORY = "penstock"
HEAD = "# Written by `make crds` from the models of services/store: not to be edited.\n"


def queue_crd() -> Schema:
    counts = {
        "ackLevel": {
            "type": "string",
            "description": "where a message is before it is acknowledged: spec.ackLevel, or what the store can keep",
        },
        "depth": _count("messages that wait or are out, some time ago"),
        "inFlight": _count("messages that were given out and are not settled, some time ago"),
        "dead": _count("dead letters, some time ago"),
    }
    columns = [
        *_ready_columns(),
        _column("Depth", "integer", ".status.depth"),
        _column("InFlight", "integer", ".status.inFlight"),
        _column("Dead", "integer", ".status.dead"),
        {**_column("AckLevel", "string", ".status.ackLevel"), "priority": 1},
    ]
    return _crd("Queue", _document(NamedQueueSpec, QUEUE_RULES, counts), columns)


def peer_crd() -> Schema:
    columns = [*_ready_columns(), _column("Protocol", "string", ".spec.protocol")]
    return _crd("Peer", _document(PeerSpec, PEER_RULES, {}), columns)


def redrive_crd() -> Schema:
    progress = {
        "startedAt": {
            "type": "string",
            "format": "date-time",
            "description": "what died until then is meant",
        },
        "sourceId": {
            "type": "string",
            "description": "the id of the source in the store: one that is made anew under its name is another",
        },
        "matched": _count("dead letters that were meant when it began"),
        "moved": _count("of them, those that are messages again"),
        "remaining": _count("of them, those that are still to be moved"),
    }
    columns = [
        *_ready_columns(),
        *(_column(name, "integer", f".status.{name.lower()}") for name in ("Matched", "Moved", "Remaining")),
    ]
    return _crd("Redrive", _document(RedriveSpec, REDRIVE_RULES, progress), columns)


def _crd(kind: str, schema: Schema, columns: list[Schema]) -> Schema:
    plural = f"{kind.lower()}s"
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [*columns, _column("Age", "date", ".metadata.creationTimestamp")],
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {**names, "categories": [CATEGORY]},
            "versions": [version],
        },
    }


def _document(model: type[BaseModel], rules: tuple[Rule, ...], counts: Schema) -> Schema:
    spec = structural(model)
    required = ["spec"] if "required" in spec else []
    schema: Schema = {
        "type": "object",
        "description": spec["description"],
        **({"required": required} if required else {}),
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec if required else {**spec, "default": filled_in(spec)},
            "status": _status(counts, ENDS if model is RedriveSpec else KEEPS),
        },
    }
    for rule in rules:
        _at(schema, rule.path).setdefault(RULES, []).append({"rule": rule.rule, "message": rule.message})
    return schema


def _at(schema: Schema, path: str) -> Schema:
    """'spec.addresses[]' are the members of that list."""
    for field in path.split(".") if path else ():
        schema = schema["properties"][field.removesuffix("[]")]
        if field.endswith("[]"):
            schema = schema["items"]
    return schema


KEEPS = "Ready is always there: whether the store keeps it as it is declared."
ENDS = (
    "Ready is always there: True when it is over and all was done, False while it runs or waits, "
    "and where it failed."
)


def _status(counts: Schema, ready: str) -> Schema:
    return {
        "type": "object",
        "description": "What the operator last saw.",
        "properties": {
            "observedGeneration": _count("the generation of the document that this is about"),
            **counts,
            "conditions": {
                "type": "array",
                "description": ready,
                "maxItems": 16,
                "items": _condition(),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
    }


def _condition() -> Schema:
    """As all of Kubernetes has them."""
    return {
        "type": "object",
        "description": "One thing that holds or does not.",
        "required": ["type", "status"],
        "properties": {
            "type": {"type": "string", "description": "what it is about", "minLength": 1, "maxLength": 316},
            "status": {
                "type": "string",
                "description": "whether it holds",
                "enum": ["True", "False", "Unknown"],
            },
            "observedGeneration": _count("the generation of the document that it is about"),
            "lastTransitionTime": {
                "type": "string",
                "format": "date-time",
                "description": "when its status last changed",
            },
            "reason": {"type": "string", "description": "why, in one word for programs", "maxLength": 1024},
            "message": {"type": "string", "description": "why, for people", "maxLength": 32768},
        },
    }


def _count(description: str) -> Schema:
    return {"type": "integer", "format": "int64", "minimum": 0, "description": description}


def _ready_columns() -> list[Schema]:
    ready = '.status.conditions[?(@.type=="Ready")]'
    return [_column("Ready", "string", f"{ready}.status"), _column("Reason", "string", f"{ready}.reason")]


def _column(name: str, kind: str, path: str) -> Schema:
    return {"name": name, "type": kind, "jsonPath": path}


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def files() -> dict[str, str]:
    """What stands in each file."""
    return {
        f"{crd['spec']['names']['plural']}.yaml": HEAD
        + yaml.dump(crd, Dumper=_Dumper, sort_keys=False, width=110)
        for crd in (queue_crd(), peer_crd(), redrive_crd())
    }


def main(words: list[str]) -> None:
    if not words:
        print("---\n".join(files().values()), end="")
        return
    folder = Path(words[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files().items():
        (folder / name).write_text(content, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

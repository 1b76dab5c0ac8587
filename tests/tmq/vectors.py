"""Read the vectors of tests/vectors/tmq.json, for conversations with a live edge."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

LONE_FIVE = b"\5"


@dataclass(frozen=True)
class Exchange:
    send: bytes
    expect: bytes


@dataclass(frozen=True)
class Vector:
    name: str
    section: str
    dialect: str
    conversation: list[Exchange]

    @property
    def has_lone_five(self) -> bool:
        return any(exchange.send == LONE_FIVE for exchange in self.conversation)


def load() -> list[Vector]:
    path = Path(__file__).parents[1] / "vectors" / "tmq.json"
    return [
        Vector(
            v["name"],
            v["section"],
            v["dialect"],
            [Exchange(bytes.fromhex(e["send"]), bytes.fromhex(e["expect"])) for e in v["conversation"]],
        )
        for v in json.loads(path.read_text())
    ]


VECTORS = load()
every_vector = pytest.mark.parametrize(
    "vector", VECTORS, ids=lambda vector: f"{vector.section} {vector.name}"
)

"""Base of the API's JSON documents: camelCase names, and octets that are not UTF-8."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

JSON = "application/json"


class Shape(BaseModel):
    """A document with camelCase names; unknown fields are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, serialize_by_alias=True)


class Nothing(Shape):
    """An empty query."""


def encode(document: Any) -> bytes:
    """Encode a document. Octets that are not UTF-8 are lone surrogates in texts, and escapes in JSON."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def plain(value: Any) -> Any:
    """Convert attributes to JSON values: octets to text, NaN and infinity to their names."""
    match value:
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {
                name if isinstance(name, str) else str(plain(name)): plain(it) for name, it in value.items()
            }
        case list() | tuple():
            return [plain(each) for each in value]
        case _:
            return str(value)

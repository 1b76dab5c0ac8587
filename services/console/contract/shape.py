"""What JSON documents of the API have in common: names in camelCase, no unknown field, and bytes that are no UTF-8."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

JSON = "application/json"


class Shape(BaseModel):
    """What is sent or answered: camelCase outside, no field that this version does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, serialize_by_alias=True)


class Nothing(Shape):
    """No query at all."""


def encode(document: Any) -> bytes:
    """Names that are not UTF-8 keep their octets as lone surrogates, which JSON writes as escapes."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def plain(value: Any) -> Any:
    """What attributes hold, as JSON can: octets as text, numbers that are none as their names."""
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

"""What all parts of a document share: camelCase in files, no field that this version does not know."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Document(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, use_enum_values=False
    )


def refuse_bool(value: object) -> object:
    """YAML's `yes` would be taken for 1."""
    if isinstance(value, bool):
        raise ValueError("write a whole number")
    return value

"""What all parts of a document share: camelCase in files, no field that this version does not know."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

API_VERSION: Literal["penstock.dev/v1alpha1"] = "penstock.dev/v1alpha1"


class Document(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, use_enum_values=False
    )


def refuse_bool(value: object) -> object:
    """YAML's `yes` would be taken for 1."""
    if isinstance(value, bool):
        raise ValueError("write a whole number")
    return value

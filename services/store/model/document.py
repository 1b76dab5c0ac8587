"""What all parts of a document share: camelCase in files, no field that this version does not know, and null for what
is not said: as Kubernetes has it, and as YAML reads `access:` with nothing behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

API_VERSION: Literal["penstock.dev/v1alpha1"] = "penstock.dev/v1alpha1"


class Document(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, use_enum_values=False
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_said(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        known = {*cls.model_fields, *(field.alias for field in cls.model_fields.values())}
        return {name: value for name, value in given.items() if value is not None or name not in known}


def is_text(text: str) -> bool:
    """Half a character of a JSON escape cannot be written as UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def written(pattern: str, max_length: int, says: str) -> WithJsonSchema:
    """How a JSON schema describes what a function of ours checks. Patterns mean the same to Python, ECMA and RE2."""
    return WithJsonSchema(
        {
            "type": "string",
            "maxLength": max_length,
            "pattern": f"^(?:{pattern})$",
            "patternErrorMessage": says,  # as editors call it
        }
    )


def refuse_bool(value: object) -> object:
    """YAML's `yes` would be taken for 1."""
    if isinstance(value, bool):
        raise ValueError("write a whole number")
    return value

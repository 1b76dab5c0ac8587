"""Define the base of all document models: camelCase names, no unknown fields, and null for omitted fields.

Kubernetes treats null as omitted, and YAML reads `access:` without a value as null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

API_VERSION: Literal["penstock.dev/v1alpha1"] = "penstock.dev/v1alpha1"


class Document(BaseModel):
    """A part of a document, immutable."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, use_enum_values=False
    )

    @model_validator(mode="before")
    @classmethod
    def _omit_nulls(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        known = {*cls.model_fields, *(field.alias for field in cls.model_fields.values())}
        return {name: value for name, value in given.items() if value is not None or name not in known}


def is_text(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8: it has no lone surrogate from a JSON escape."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def text_schema(pattern: str, max_length: int, message: str) -> WithJsonSchema:
    """Return the JSON schema of a text checked by a validator; patterns mean the same in Python, ECMA and RE2."""
    return WithJsonSchema(
        {
            "type": "string",
            "maxLength": max_length,
            "pattern": f"^(?:{pattern})$",
            "patternErrorMessage": message,  # shown by editors
        }
    )


def matching(pattern: re.Pattern[str], message: str) -> AfterValidator:
    """Return a validator for texts that match `pattern` and can be encoded; it fails with `message`."""

    def check(text: str) -> str:
        if not (pattern.fullmatch(text) and is_text(text)):
            raise ValueError(message)
        return text

    return AfterValidator(check)


def list_as_in(example: str) -> BeforeValidator:
    """Return a validator that refuses a single text, which pydantic would split into characters."""

    def check(value: object) -> object:
        if isinstance(value, str):
            raise ValueError(f"write a list, as in {example}")
        return value

    return BeforeValidator(check)


def refuse_bool(value: object) -> object:
    """Refuse a boolean, as YAML's `yes` would be read as 1. Raises ValueError."""
    if isinstance(value, bool):
        raise ValueError("write a whole number")
    return value

"""Mask secrets in settings: passwords in URLs, and fields with a secret's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from services.outside.url import MASK, BadUrl, mask_url, parse_url

SECRET_FAULT = "secret"  # the type of a pydantic error whose input must not be shown
_SECRET_NAME = re.compile(r"password|passphrase|secret|token|credential|^headers$", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Return whether a field of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


def mask(value: Any, name: str = "") -> Any:
    """Return the data with `***` for every secret, at any depth."""
    if isinstance(value, Mapping):
        return {key: mask(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [mask(inner, name) for inner in value]
    if value is not None and is_secret(name):
        return MASK
    return mask_url(value) if isinstance(value, str) else value


class _Secret:
    """Base class of values that are shown only by `reveal`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value itself."""
        return self._value

    def __str__(self) -> str:
        return MASK

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    @classmethod
    def _of(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        return cls(cls._checked(value))

    @classmethod
    def _checked(cls, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError("must be a text")
        return value

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Accept a text or an instance; serialize it masked."""
        shown = core_schema.plain_serializer_function_ser_schema(str, when_used="json")
        return core_schema.no_info_plain_validator_function(cls._of, serialization=shown)


class SecretText(_Secret):
    """A secret text."""

    __slots__ = ()


class SecretUrl(_Secret):
    """A URL whose login and query are secret."""

    __slots__ = ()

    def __str__(self) -> str:
        return mask_url(self._value)

    @classmethod
    def _checked(cls, value: object) -> str:
        try:
            if not isinstance(value, str):
                raise BadUrl("must be a URL such as redis://user:password@host:6379/0")
            parse_url(value)
        except BadUrl as error:
            raise PydanticCustomError(SECRET_FAULT, "{why}", {"why": str(error)}) from None
        return value

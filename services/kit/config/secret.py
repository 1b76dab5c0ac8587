"""Values that must not be shown: URLs with passwords, and whatever is named like a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from services.outside.url import MASK, BadUrl, mask_url, parse_url

SECRET_FAULT = "secret"  # the type of a pydantic error whose input must not be shown
_SECRET_NAME = re.compile(r"password|passphrase|secret|token|credential|^headers$", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Does a field of this name hold a secret?"""
    return _SECRET_NAME.search(name) is not None


def mask(value: Any, name: str = "") -> Any:
    """The same data with `***` for every secret in it, however deep."""
    if isinstance(value, Mapping):
        return {key: mask(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [mask(inner, name) for inner in value]
    if value is not None and is_secret(name):
        return MASK
    return mask_url(value) if isinstance(value, str) else value


class SecretUrl:
    """A URL whose login and query show only where they are asked for, by `reveal`."""

    __slots__ = ("_url",)

    def __init__(self, url: str) -> None:
        self._url = url

    def reveal(self) -> str:
        return self._url

    def __str__(self) -> str:
        return mask_url(self._url)

    def __repr__(self) -> str:
        return f"SecretUrl({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretUrl) and other._url == self._url

    def __hash__(self) -> int:
        return hash(self._url)

    @classmethod
    def _of(cls, value: object) -> SecretUrl:
        if isinstance(value, SecretUrl):
            return value
        try:
            if not isinstance(value, str):
                raise BadUrl("must be a URL such as redis://user:password@host:6379/0")
            parse_url(value)
        except BadUrl as error:
            raise PydanticCustomError(SECRET_FAULT, "{why}", {"why": str(error)}) from None
        return cls(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """From text, or one ready made; written out masked."""
        shown = core_schema.plain_serializer_function_ser_schema(str, when_used="json")
        return core_schema.no_info_plain_validator_function(cls._of, serialization=shown)


class SecretText:
    """A text that shows only where it is asked for, by `reveal`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __str__(self) -> str:
        return MASK

    def __repr__(self) -> str:
        return f"SecretText({MASK})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    @classmethod
    def _of(cls, value: object) -> SecretText:
        if isinstance(value, SecretText):
            return value
        if not isinstance(value, str):
            raise ValueError("must be a text")
        return cls(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """From text, or one ready made; written out masked."""
        shown = core_schema.plain_serializer_function_ser_schema(str, when_used="json")
        return core_schema.no_info_plain_validator_function(cls._of, serialization=shown)

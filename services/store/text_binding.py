"""`bindings.text` of a queue: which tags it subscribes to, and under which one it publishes (pubsub.md 2, 5)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from services.store.document import Document

TAG = re.compile(r"[^\x00-\x20*]+")  # pubsub.md 2
PATTERN = re.compile(r"[^\x00-\x20*]+\*?")


def _is_text(text: str) -> bool:
    """Half a character of a JSON escape cannot be written as UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def check_tag(tag: str) -> str:
    if tag and not (TAG.fullmatch(tag) and _is_text(tag)):
        raise ValueError("a tag has 1 or more characters above 32, none of them '*'")
    return tag


def check_pattern(pattern: str) -> str:
    if not (PATTERN.fullmatch(pattern) and _is_text(pattern)):
        raise ValueError("a pattern is a tag, or the beginning of one and then '*'")
    return pattern


def refuse_text(value: object) -> object:
    """One pattern alone looks as if it were enough."""
    if isinstance(value, str):
        raise ValueError("write a list of patterns, as in [order.new, 'audit.*']")
    return value


Patterns = Annotated[tuple[Annotated[str, AfterValidator(check_pattern)], ...], BeforeValidator(refuse_text)]


class TextBinding(Document):
    """How a queue meets the text service."""

    subscribe: Patterns = Field(
        (), max_length=100, description="patterns: each message that matches one is put in, once"
    )
    publish: Annotated[str, AfterValidator(check_tag)] = Field(
        "", max_length=255, description="the tag under which all that is put in appears; '' = nowhere"
    )

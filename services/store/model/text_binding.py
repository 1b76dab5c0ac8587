"""`bindings.text` of a queue: which tags it subscribes to, and under which one it publishes (pubsub.md 2, 5)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from services.store.model.document import Document, is_text, written

TAG = re.compile(r"[^\x00-\x20*]+")  # pubsub.md 2
PATTERN = re.compile(r"[^\x00-\x20*]+\*?")


MAX_TAG = 255  # characters
MAX_PATTERN = MAX_TAG + 1
NO_TAG = "a tag has 1 or more characters above 32, none of them '*'"
NO_PATTERN = "a pattern is a tag, or the beginning of one and then '*'"


def check_tag(tag: str) -> str:
    if tag and not (TAG.fullmatch(tag) and is_text(tag)):
        raise ValueError(NO_TAG)
    return tag


def check_pattern(pattern: str) -> str:
    if not (PATTERN.fullmatch(pattern) and is_text(pattern)):
        raise ValueError(NO_PATTERN)
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a pattern has at most {MAX_PATTERN} characters, this one has {len(pattern)}")
    return pattern


def refuse_text(value: object) -> object:
    """One pattern alone looks as if it were enough."""
    if isinstance(value, str):
        raise ValueError("write a list of patterns, as in [order.new, 'audit.*']")
    return value


Tag = Annotated[str, AfterValidator(check_tag), written(f"(?:{TAG.pattern})?", MAX_TAG, NO_TAG)]
Pattern = Annotated[str, AfterValidator(check_pattern), written(PATTERN.pattern, MAX_PATTERN, NO_PATTERN)]
Patterns = Annotated[tuple[Pattern, ...], BeforeValidator(refuse_text)]


class TextBinding(Document):
    """How a queue meets the text service."""

    subscribe: Patterns = Field(
        (), max_length=100, description="patterns: each message that matches one is put in, once"
    )
    publish: Tag = Field(
        "", max_length=MAX_TAG, description="the tag under which all that is put in appears; '' = nowhere"
    )

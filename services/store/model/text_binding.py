"""Validate `bindings.text` of a queue: the tags it subscribes to, and the tag it publishes under (pubsub.md 2, 5)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from services.store.model.document import Document, list_as_in, matching, text_schema

TAG = re.compile(r"[^\x00-\x20*]+")  # pubsub.md 2
OPTIONAL_TAG = re.compile(f"(?:{TAG.pattern})?")
PATTERN = re.compile(r"[^\x00-\x20*]+\*?")
MAX_TAG = 255  # characters
MAX_PATTERN = MAX_TAG + 1
NO_TAG = "a tag has 1 or more characters above 32 other than '*'"
NO_PATTERN = "a pattern is a tag, or the beginning of a tag followed by '*'"


def check_length(pattern: str) -> str:
    """Return a pattern. Raises ValueError if it is too long."""
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a pattern has at most {MAX_PATTERN} characters, this one has {len(pattern)}")
    return pattern


Tag = Annotated[str, matching(OPTIONAL_TAG, NO_TAG), text_schema(OPTIONAL_TAG.pattern, MAX_TAG, NO_TAG)]
Pattern = Annotated[
    str,
    matching(PATTERN, NO_PATTERN),
    AfterValidator(check_length),
    text_schema(PATTERN.pattern, MAX_PATTERN, NO_PATTERN),
]
Patterns = Annotated[tuple[Pattern, ...], list_as_in("[order.new, 'audit.*']")]


class TextBinding(Document):
    """How the queue exchanges messages with the text service."""

    subscribe: Patterns = Field(
        (), max_length=100, description="patterns; each message that matches at least one is put in, once"
    )
    publish: Tag = Field(
        "",
        max_length=MAX_TAG,
        description="the tag under which the queue's messages are published; '' = none",
    )

"""Define and discover the file formats in which protocols keep dead letters.

A package declares its format as `DEAD_LETTER_FORMAT` in its module `dead_letter_format`; `formats` discovers it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

import services


@dataclass(frozen=True, slots=True)
class ExportedDeadLetter:
    """A dead letter in an exported file."""

    body: bytes
    reason: str  # as the store names it


class DamagedDeadLetters(ValueError):
    """A damaged file. The message has the position in bytes; all letters before it have been returned."""

    def __init__(self, message: str, *, can_be_skipped: bool = False) -> None:
        """Set `can_be_skipped` if only the next letter is damaged."""
        super().__init__(message)
        self.can_be_skipped = can_be_skipped


class DeadLetterReader(Protocol):
    """A reader of one file, in chunks of any size."""

    @property
    def skipped(self) -> int:
        """Return how many letters were skipped, as requested."""

    def receive(self, data: bytes) -> Iterator[ExportedDeadLetter]:
        """Yield the letters that `data` completes. Raises DamagedDeadLetters after the valid ones."""

    def receive_eof(self) -> None:
        """Handle the end of the file. Raises DamagedDeadLetters if it is inside a letter."""


@dataclass(frozen=True, slots=True)
class DeadLetterFormat:
    """A file format of dead letters."""

    name: str  # unique, as `garbage-msg`
    help: str  # a short description
    encode: Callable[[ExportedDeadLetter], bytes]
    # takes the maximum size of a body, and how many letters to skip
    reader: Callable[[int, int], DeadLetterReader]


def formats() -> dict[str, DeadLetterFormat]:
    """Return all formats by name."""
    found: dict[str, DeadLetterFormat] = {}
    for package in pkgutil.iter_modules(services.__path__, "services."):
        module = f"{package.name}.dead_letter_format"
        if package.ispkg and package.name != __package__ and find_spec(module) is not None:
            letters = getattr(importlib.import_module(module), "DEAD_LETTER_FORMAT", None)
            if isinstance(letters, DeadLetterFormat):
                found[letters.name] = letters
    return found

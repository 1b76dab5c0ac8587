"""Files that dead letters are exported to and imported from, as a protocol has them.

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
    """What such a file keeps of a dead letter."""

    body: bytes
    reason: str  # the store's name for it


class DamagedDeadLetters(ValueError):
    """The file cannot be read on; the text says where in it, in bytes. All before has been handed out.

    can_be_skipped: what is damaged is the next letter alone.
    """

    def __init__(self, message: str, *, can_be_skipped: bool = False) -> None:
        super().__init__(message)
        self.can_be_skipped = can_be_skipped


class DeadLetterReader(Protocol):
    """Reads one file, in pieces of any size."""

    @property
    def skipped(self) -> int:
        """How many letters it has passed over, as it was told to."""

    def receive(self, data: bytes) -> Iterator[ExportedDeadLetter]:
        """What `data` completes; to be consumed to its end. Raises LettersDamaged after the good ones."""

    def receive_eof(self) -> None:
        """The file's end. Raises LettersDamaged if it is inside a letter."""


@dataclass(frozen=True, slots=True)
class DeadLetterFormat:
    name: str  # `garbage-msg`; no other may have the same
    help: str  # what it is, in a few words
    encode: Callable[[ExportedDeadLetter], bytes]
    reader: Callable[
        [int, int], DeadLetterReader
    ]  # of bodies with at most so many bytes; passes over the first so many


def formats() -> dict[str, DeadLetterFormat]:
    """Every format there is, by name."""
    found: dict[str, DeadLetterFormat] = {}
    for package in pkgutil.iter_modules(services.__path__, "services."):
        module = f"{package.name}.dead_letter_format"
        if package.ispkg and package.name != __package__ and find_spec(module) is not None:
            letters = getattr(importlib.import_module(module), "DEAD_LETTER_FORMAT", None)
            if isinstance(letters, DeadLetterFormat):
                found[letters.name] = letters
    return found

"""What a command ends with. The table is public: docs/cli.md, scripts rely on it."""

from __future__ import annotations

from enum import IntEnum

from services.kit.config import SettingsError
from services.store import StoreError, StoreUnavailable
from services.store.model import DatasetLost, OutcomeUnknown, QueueUnknown


class Exit(IntEnum):
    """Exit codes of every command."""

    OK = 0
    REFUSED = 1  # by the store (its reason is named), or doctor found something that must not be
    USAGE = 2  # bad arguments, settings or documents
    UNAVAILABLE = 3  # no store, or it cannot be reached: try again later
    NOT_FOUND = 4  # no such queue or dead letter, or there was no message
    UNKNOWN = 5  # the store was asked, and what became of it cannot be learnt
    FAULT = 70  # a fault of our own (EX_SOFTWARE)
    IO = 74  # our output could not be written (EX_IOERR)
    INTERRUPTED = 130  # Ctrl-C
    BROKEN_PIPE = 141  # whoever read our output has gone
    TERMINATED = 143  # SIGTERM, to anything but `up` and `serve`


class Failure(Exception):
    """The end of a command: a stable label for programs, one line for people that says what to do."""

    def __init__(self, exit: Exit, label: str, message: str) -> None:
        super().__init__(message)
        self.exit = exit
        self.label = label
        self.message = message

    def half_way(self, stored: int, text: str) -> Failure:
        """The same, after so many messages had been stored: 2 to 4 say that none was, so it is 1 then."""
        says_none = (Exit.USAGE, Exit.UNAVAILABLE, Exit.NOT_FOUND)
        return Failure(Exit.REFUSED if stored and self.exit in says_none else self.exit, self.label, text)


def usage(message: str) -> Failure:
    return Failure(Exit.USAGE, "usage", message)


def not_found(message: str) -> Failure:
    return Failure(Exit.NOT_FOUND, "not_found", message)


# The first that fits counts.
_EXITS: tuple[tuple[type[StoreError], Exit], ...] = (
    (DatasetLost, Exit.REFUSED),  # waiting does not help: somebody has to decide
    (StoreUnavailable, Exit.UNAVAILABLE),
    (OutcomeUnknown, Exit.UNKNOWN),
    (QueueUnknown, Exit.NOT_FOUND),
    (StoreError, Exit.REFUSED),
)


def failure_of(error: StoreError | SettingsError) -> Failure:
    """How an error of the parts below ends a command."""
    if isinstance(error, SettingsError):
        return Failure(Exit.USAGE, error.label, "; ".join(error.lines))
    code = next(code for kind, code in _EXITS if isinstance(error, kind))
    return Failure(code, error.reason, str(error))

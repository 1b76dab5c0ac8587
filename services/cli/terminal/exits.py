"""The exit codes of commands and the failures that lead to them. They are public: see docs/cli.md."""

from __future__ import annotations

from enum import IntEnum

from services.kit.config import SettingsError
from services.store import StoreError, StoreUnavailable
from services.store.model import DatasetLost, OutcomeUnknown, QueueUnknown


class Exit(IntEnum):
    """Exit codes of every command."""

    OK = 0
    REFUSED = 1  # by the store, which names the reason, or a check of doctor failed
    USAGE = 2  # bad arguments, settings or documents
    UNAVAILABLE = 3  # there is no store, or it is unreachable: try again later
    NOT_FOUND = 4  # no such queue or dead letter, or no message
    UNKNOWN = 5  # the request was sent, its outcome is unknown
    FAULT = 70  # internal error (EX_SOFTWARE)
    IO = 74  # the output could not be written (EX_IOERR)
    INTERRUPTED = 130  # Ctrl-C
    BROKEN_PIPE = 141  # the reader of the output is gone
    TERMINATED = 143  # SIGTERM, except to services such as `up` and `serve`


class Failure(Exception):
    """The failure of a command: an exit code, a stable label for programs, and a message with what to do."""

    def __init__(self, exit: Exit, label: str, message: str) -> None:
        super().__init__(message)
        self.exit = exit
        self.label = label
        self.message = message

    def after_partial_success(self, stored: int, text: str) -> Failure:
        """Return the failure with this text; exit codes 2 to 4 mean that nothing was stored, so that they become 1."""
        says_none = (Exit.USAGE, Exit.UNAVAILABLE, Exit.NOT_FOUND)
        return Failure(Exit.REFUSED if stored and self.exit in says_none else self.exit, self.label, text)


def usage(message: str) -> Failure:
    """Return a failure for wrong arguments."""
    return Failure(Exit.USAGE, "usage", message)


def not_found(message: str) -> Failure:
    """Return a failure for something that does not exist."""
    return Failure(Exit.NOT_FOUND, "not_found", message)


# The first match counts.
_EXITS: tuple[tuple[type[StoreError], Exit], ...] = (
    (DatasetLost, Exit.REFUSED),  # needs a decision by the operator
    (StoreUnavailable, Exit.UNAVAILABLE),
    (OutcomeUnknown, Exit.UNKNOWN),
    (QueueUnknown, Exit.NOT_FOUND),
    (StoreError, Exit.REFUSED),
)


def failure_of(error: StoreError | SettingsError) -> Failure:
    """Return the failure for an error of the store or the settings."""
    if isinstance(error, SettingsError):
        return Failure(Exit.USAGE, error.label, "; ".join(error.lines))
    code = next(code for kind, code in _EXITS if isinstance(error, kind))
    return Failure(code, error.reason, str(error))

"""Report store failures after the deciding step of an operation as an unknown outcome."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from services.store.model.errors import OutcomeUnknown, StoreUnavailable


@contextlib.contextmanager
def unknown_after_commit(*others: type[Exception]) -> Iterator[None]:
    """Raise OutcomeUnknown in place of StoreUnavailable and its subclasses, which would claim that nothing was done.

    others: further exceptions that only mean that the answer cannot be reported.
    """
    caught: tuple[type[Exception], ...] = (StoreUnavailable, *others)
    try:
        yield
    except caught as error:
        raise OutcomeUnknown(
            f"the change was made completely or in part, and then: {error}; check the result, or repeat the request"
        ) from error

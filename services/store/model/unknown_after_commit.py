"""What comes behind the step that decides: a store that goes away there takes nothing back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from services.store.model.errors import OutcomeUnknown, StoreUnavailable


@contextlib.contextmanager
def unknown_after_commit(*others: type[Exception]) -> Iterator[None]:
    """Raises OutcomeUnknown for a store that went away, or came back as other data: StoreUnavailable, and what is below
    it, says that nothing was done.

    others: what else says only that the answer cannot be told.
    """
    caught: tuple[type[Exception], ...] = (StoreUnavailable, *others)
    try:
        yield
    except caught as error:
        raise OutcomeUnknown(
            f"all of it was done, or the first part, and then: {error}; look at it, or do the same again"
        ) from error

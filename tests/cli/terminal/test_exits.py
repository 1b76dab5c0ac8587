"""Test that every error of the store has an exit status for scripts."""

from __future__ import annotations

import pytest

from services.cli.terminal.exits import Exit, failure_of
from services.kit.config.settings import SettingsError
from services.store.model import errors
from services.store.model.errors import StoreError

UNAVAILABLE = {errors.StoreUnavailable, errors.NotInitialised, errors.TooLate}
OTHERS = {errors.OutcomeUnknown: Exit.UNKNOWN, errors.QueueUnknown: Exit.NOT_FOUND}


def kinds(kind: type[StoreError]) -> list[type[StoreError]]:
    """Return the class and all its subclasses in the store; programs may have more."""
    own = (child for child in kind.__subclasses__() if child.__module__.startswith("services.store"))
    return [kind, *(below for child in own for below in kinds(child))]


@pytest.mark.parametrize("kind", kinds(StoreError))
def test_each_error_has_its_code_and_label(kind: type[StoreError]) -> None:
    failure = failure_of(kind("why"))
    expected = Exit.UNAVAILABLE if kind in UNAVAILABLE else OTHERS.get(kind, Exit.REFUSED)
    assert (failure.exit, failure.label, failure.message) == (expected, kind.reason, "why")


def test_bad_settings_are_usage_errors() -> None:
    failure = failure_of(SettingsError(["one", "two"]))
    assert (failure.exit, failure.message) == (Exit.USAGE, "one; two")

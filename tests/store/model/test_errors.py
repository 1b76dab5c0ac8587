"""Refusals: one exception a reason, with a label for counters and a message for people."""

import pytest

from services.store.model import errors
from services.store.model.errors import REFUSALS, StoreError, StoreFault, StoreUnavailable, refusal


def everything(kind: type[StoreError] = StoreError) -> list[type[StoreError]]:
    """Of the store's own: others may have made some, too."""
    mine = [below for below in kind.__subclasses__() if below.__module__ == errors.__name__]
    return [kind, *(found for below in mine for found in everything(below))]


def test_every_reason_is_its_own() -> None:
    reasons = [kind.reason for kind in everything()]
    assert len(set(reasons)) == len(reasons)
    assert all(reason.replace("_", "").isalpha() and reason.islower() for reason in reasons)


@pytest.mark.parametrize("kind", everything())
def test_the_docstring_is_the_message(kind: type[StoreError]) -> None:
    assert str(kind()) == kind.__doc__
    assert str(kind("what happened")) == "what happened"


@pytest.mark.parametrize("kind", everything())
def test_strangers_read_nothing_of_what_the_store_said(kind: type[StoreError]) -> None:
    said = "Error 111 connecting to 10.0.0.7:6379"
    hides = issubclass(kind, StoreUnavailable | StoreFault)
    assert kind(said).outward == (kind.__doc__ if hides else said)


def test_the_overview_names_them_all() -> None:
    assert errors.__doc__ is not None
    assert [kind.__name__ for kind in everything() if kind.__name__ not in errors.__doc__] == []


@pytest.mark.parametrize("name", REFUSALS)
def test_what_the_functions_refuse_has_an_exception(name: str) -> None:
    assert type(refusal(name)) is type(refusal(name.encode())) is REFUSALS[name]


def test_an_unknown_refusal_is_a_fault() -> None:
    assert isinstance(refusal(b"WHY"), StoreFault)


def test_what_was_certainly_not_stored_is_unavailable() -> None:
    """Edges answer these as failed; OutcomeUnknown never (tmq.md 7.2)."""
    names = {kind.__name__ for kind in everything(StoreUnavailable)}
    assert names == {"StoreUnavailable", "DatasetLost", "NotInitialised", "TooLate"}

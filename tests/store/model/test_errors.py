"""The store's refusals: one exception for each reason, with a label for counters and a message for users."""

import pytest

from services.store.model import errors
from services.store.model.errors import REFUSALS, StoreError, StoreFault, StoreUnavailable, refusal


def all_errors(kind: type[StoreError] = StoreError) -> list[type[StoreError]]:
    """Return the store's own exceptions, without subclasses of other packages."""
    mine = [below for below in kind.__subclasses__() if below.__module__ == errors.__name__]
    return [kind, *(found for below in mine for found in all_errors(below))]


def test_reasons_are_unique() -> None:
    reasons = [kind.reason for kind in all_errors()]
    assert len(set(reasons)) == len(reasons)
    assert all(reason.replace("_", "").isalpha() and reason.islower() for reason in reasons)


@pytest.mark.parametrize("kind", all_errors())
def test_default_message_of_each_refusal(kind: type[StoreError]) -> None:
    assert str(kind()) == kind.message
    assert str(kind("what happened")) == "what happened"


@pytest.mark.parametrize("kind", all_errors())
def test_clients_do_not_see_the_text_of_the_store(kind: type[StoreError]) -> None:
    text = "Error 111 connecting to 10.0.0.7:6379"
    hides = issubclass(kind, StoreUnavailable | StoreFault)
    assert kind(text).outward == (kind.message if hides else text)


@pytest.mark.parametrize("name", REFUSALS)
def test_each_refusal_of_a_function_has_an_exception(name: str) -> None:
    assert type(refusal(name)) is type(refusal(name.encode())) is REFUSALS[name]


def test_unknown_refusal_is_a_store_fault() -> None:
    assert isinstance(refusal(b"WHY"), StoreFault)


def test_only_unavailable_guarantees_that_nothing_was_stored() -> None:
    """Check which errors guarantee that nothing was stored; edges report these as failed (tmq.md 7.2)."""
    names = {kind.__name__ for kind in all_errors(StoreUnavailable)}
    assert names == {"StoreUnavailable", "DatasetLost", "NotInitialised", "TooLate"}

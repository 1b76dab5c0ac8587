"""Error texts: each refusal has one, and all are documented (ring.md 5.6, 5.8)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from protos.ring import REFUSALS
from services.ring import error_texts as words
from services.ring.clients.queues import FORBIDDEN
from services.store import StoreError
from services.store.model import errors

ROOT = Path(__file__).parents[3]
REFUSED = re.compile(r"refuse\(\s*\"([a-z_]+)\"")
DOCUMENT = (ROOT / "protos" / "ring.md").read_text()
ROWS = dict(re.findall(r"^\| `([a-z_]+)` \| `([^`|]+)` \|$", DOCUMENT.partition("\n5.8 ")[2], re.M))
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, StoreError)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not errors.OutcomeUnknown])
def test_every_store_error_has_a_text(kind: type[StoreError]) -> None:
    message = words.error_text(kind())
    assert message == ROWS.get(kind.reason, message)
    if kind.reason not in ROWS:
        assert f"| {kind.reason} |" not in DOCUMENT
        # reasons without a text of their own
        kinds = (StoreError, errors.StoreUnavailable, errors.QueueReserved)
        assert message in [words.REFUSED[each] for each in kinds if issubclass(kind, each)]
        assert f"`{message}`" in DOCUMENT


def said_by_the_port() -> set[str]:
    """Return the reasons for which the port itself refuses requests."""
    folder = ROOT / "services" / "ring" / "clients"
    names = {reason for path in folder.glob("*.py") for reason in REFUSED.findall(path.read_text())}
    return names | {reason for reason, _ in FORBIDDEN.values()}


def test_every_refusal_reason_is_in_the_spec() -> None:
    given = said_by_the_port()
    assert {"reserved_name", "create_forbidden", "too_many_unsettled", "unserved"} <= given
    for reason in (*given, *REFUSALS):
        assert f"| `{reason}` |" in DOCUMENT


def test_every_error_text_is_in_the_spec() -> None:
    texts = [value for name, value in vars(words).items() if name.isupper() and isinstance(value, str)]
    assert len(texts) >= 7
    for text in texts:
        assert f"`{text}`" in DOCUMENT, text

"""Test that docs/kubernetes.md lists every field of the CRDs from `make crds`, and test all its other tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from penstock_operator.documents.conditions import Reason
from penstock_operator.documents.reference import filled, tables
from penstock_operator.settings import OperatorSettings

PAGE = Path(__file__).parents[3] / "docs" / "kubernetes.md"


def test_tables_match_the_crds() -> None:
    page = PAGE.read_text("utf-8")
    assert filled(page) == page


def test_tables_have_every_field() -> None:
    for kind, field in (
        ("Queue", "spec.remote.maxMessageBytes"),
        ("Queue", "status.conditions[].reason"),
        ("Peer", "spec.trustAddress"),
        ("Redrive", "status.remaining"),
    ):
        assert f"| `{field}` |" in tables()[kind]


def test_page_without_markers() -> None:
    with pytest.raises(ValueError, match="the page lacks the markers for the fields of Queue"):
        filled("# Nothing")


def test_every_reason_and_setting_is_documented() -> None:
    page = PAGE.read_text("utf-8")
    assert [reason for reason in Reason if f"`{reason}`" not in page] == []
    settings = [f"{name.upper()}`" for name in OperatorSettings.model_fields]
    assert [name for name in settings if name not in page] == []

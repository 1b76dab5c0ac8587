"""Reasons of broken links as metric labels (docs/operations.md, Rings)."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.ring.node.break_labels import OTHER, REASONS, STORE, reason_of
from services.ring.node.users import DUPLICATE_NAME

ROOT = Path(__file__).parents[3]
SOURCES = [
    ROOT / "protos/connection_input.py",
    *ROOT.glob("protos/ring/*.py"),
    *ROOT.glob("services/ring/node/**/*.py"),
]


@pytest.mark.parametrize(
    ("side", "why", "reason"),
    [
        ("inbound", "the predecessor closed it", "closed"),
        ("outbound", "no answer in time", "ack_timeout"),
        ("outbound", "not_an_ack", "not_an_ack"),
        ("both", f"name: {DUPLICATE_NAME}", "same_name"),
        ("both", "this node is stopping", "stopping"),
        ("both", "the store cannot be reached: Connection refused", STORE),
        ("inbound", "unknown words", OTHER),
    ],
)
def test_break_reasons_map_to_labels(side: str, why: str, reason: str) -> None:
    assert reason_of(side, why) == reason


def test_every_mapped_break_reason_exists_in_the_code() -> None:
    """Check that each mapped reason exists in the code: a changed text would be counted under another label."""
    sources = "".join(
        path.read_text() for path in SOURCES if path.name not in ("break_labels.py", "node_metrics.py")
    )
    unsaid = [why for why in REASONS if f'"{why}"' not in sources]
    assert unsaid == [
        "the ring has no leader, and the predecessor is silent",
        f"name: {DUPLICATE_NAME}",
    ]
    assert ", and the predecessor is silent" in sources


def test_all_break_labels_are_documented() -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    row = next(line for line in page.splitlines() if "`penstock_ring_breaks_total`" in line)
    in_the_spec = {
        "unknown_type",
        "too_long",
        "truncated",
        "request_timeout",
        "not_an_ack",
        "ack_for_nothing",
    }
    wanted = {*REASONS.values(), STORE, OTHER} - in_the_spec
    assert [label for label in sorted(wanted) if f"`{label}`" not in row] == []

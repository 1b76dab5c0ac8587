"""Filters with unknown reasons (docs/store.md, "Reasons of dead letters")."""

from __future__ import annotations

import re

import pytest

from services.store import DeadLetters, Filter
from services.store.model import records
from services.store.model.dead_letter import OWN_REASONS
from services.store.model.errors import REFUSAL_LABELS, ReasonUnknown
from tests.store.desk import Desk
from tests.tmq.process import ROOT


def test_documented_reasons_are_known() -> None:
    page = (ROOT / "docs" / "store.md").read_text()
    table = page.partition("\n## Reasons of dead letters\n")[2].partition("\n## ")[0]
    names = {
        name
        for row in table.splitlines()
        if row.startswith("| `")
        for name in NAME.findall(row.split("|")[1])
    }
    assert names - REFUSAL_LABELS == OWN_REASONS - REFUSAL_LABELS


NAME = re.compile(r"`([a-z_]+)`")


async def test_mistyped_reason_is_refused_and_one_in_use_is_accepted(desk: Desk) -> None:
    queue = await desk.queue()
    letters = DeadLetters(desk.domain, queue)
    with pytest.raises(ReasonUnknown, match="no dead letter of queue 'orders' has the reason 'max_delivery'"):
        await letters.until_now(Filter(("expired", "queue_full", "max_delivery")))
    await desk.bury(queue, records.encode(b"x"), "of_our_own")
    assert await letters.until_now(Filter(("of_our_own",)))

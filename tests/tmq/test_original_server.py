"""Test Penstock's column in docs/tmq.md's table of differences from the original server."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.tmq.conftest import MakeEdge
from tools.tmq_original.calls import CALLS
from tools.tmq_original.conversation import answers
from tools.tmq_original.table import parsed, replaced, table

PAGE = Path(__file__).parents[2] / "docs" / "tmq.md"


async def test_document_lists_the_replies_to_each_call(make_edge: MakeEdge) -> None:
    edge = await make_edge(eof_grace_s=0.1)
    ours = await asyncio.to_thread(answers, edge.places["reference"], CALLS)
    page = PAGE.read_text()
    shown = parsed(page)
    assert {steps: mine for steps, (_, mine) in shown.items()} == {
        call.steps: answer for call, answer in zip(CALLS, ours, strict=True)
    }
    theirs = [shown[call.steps][0] for call in CALLS]
    assert replaced(page, table(CALLS, theirs, ours)) == page, "run tools.tmq_original again"
    assert "unexplained" not in page

"""Queue documents with ring bindings: the inbox and outbox of a group (ring.md 5.5, docs/store.md)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from services.store import QueueDocument, QueueSpec
from services.store.model.duration import STORED
from services.store.model.errors import NumberTaken, QueueUnknown
from services.store.model.ring_binding import INBOX, OUTBOX
from services.store.model.spec import to_document
from tests.store.desk import Desk

groups = st.none() | st.integers(1, 0xFFFF)


def ring(**binding: Any) -> dict[str, Any]:
    return {"bindings": {"ring": binding}}


def problem(**spec: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        QueueDocument.model_validate({"metadata": {"name": "orders"}, "spec": spec})
    return str(caught.value)


@given(groups, groups)
def test_document_round_trips(inbox: int | None, outbox: int | None) -> None:
    if inbox is not None and inbox == outbox:
        return
    read = QueueDocument.model_validate(
        {"metadata": {"name": "orders"}, "spec": ring(inbox=inbox, outbox=outbox)}
    ).queue
    assert (read.bindings.ring.inbox, read.bindings.ring.outbox) == (inbox, outbox)
    assert QueueDocument.model_validate(to_document("orders", read)).queue == read
    kept = read.model_dump_json(by_alias=True, exclude_defaults=True)
    assert QueueSpec.model_validate_json(kept, context=STORED) == read


def test_defaults() -> None:
    assert (QueueSpec().bindings.ring.inbox, QueueSpec().bindings.ring.outbox) == (None, None)
    assert QueueSpec().numbers() == []
    assert QueueSpec(**ring(inbox=7, outbox=8)).numbers() == ["ring-inbox 7", "ring-outbox 8"]


@pytest.mark.parametrize("end", ["inbox", "outbox"])
@pytest.mark.parametrize("group", [0, -1, 0x1_0000, 1.5, True, "seven"])
def test_invalid_group_is_refused(group: object, end: str) -> None:
    """Check that invalid groups are refused (ring.md 3.3)."""
    assert f"bindings.ring.{end}" in problem(**ring(**{end: group}))


def test_inbox_and_outbox_of_one_group_are_refused() -> None:
    """Check that an inbox and an outbox of one group are refused, as messages would loop."""
    assert "inbox and outbox are both of group 7" in problem(**ring(inbox=7, outbox=7))


@pytest.mark.parametrize("end", ["inbox", "outbox"])
def test_remote_queue_with_ring_binding_is_refused(end: str) -> None:
    """Check that this is refused: two systems could forward a message in a loop, and two edges would take messages."""
    text = problem(remote={"protocol": "rqp-mca", "queueId": 1}, **ring(**{end: 7}))
    assert "or bindings.ring" in text


async def test_group_has_one_inbox_and_one_outbox(desk: Desk) -> None:
    inbox = await desk.queue("in", **ring(inbox=7))
    outbox = await desk.queue("out", **ring(outbox=7, inbox=8))
    with pytest.raises(NumberTaken) as caught:
        await desk.queue("second", **ring(inbox=7))
    assert str(caught.value) == "queue 'in' is the inbox of ring group 7: each group has one inbox"
    with pytest.raises(
        NumberTaken, match="queue 'out' is the outbox of ring group 7: each group has one outbox"
    ):
        await desk.queue("second", **ring(outbox=7))
    with pytest.raises(NumberTaken, match="queue 'out' is the inbox of ring group 8"):
        await desk.queue("second", **ring(inbox=8, outbox=9))
    with pytest.raises(QueueUnknown):
        await desk.store.catalogue.find("second")
    async with desk.another() as other:
        assert (await other.store.catalogue.numbered(INBOX, 7)).qid == inbox.qid
        assert (await other.store.catalogue.numbered(OUTBOX, 7)).qid == outbox.qid
        assert (await other.store.catalogue.numbered(INBOX, 8)).qid == outbox.qid
        with pytest.raises(QueueUnknown, match="ring-outbox 8"):
            await other.store.catalogue.numbered(OUTBOX, 8)


async def test_claim_on_a_group_is_freed_by_change_and_deletion(desk: Desk) -> None:
    queue = await desk.queue("in", **ring(inbox=7))
    await desk.store.catalogue.declare("in", QueueSpec(**ring(outbox=7)), "test", replace=True)
    heir = await desk.queue("heir", **ring(inbox=7))
    await desk.store.catalogue.delete(queue)
    await desk.queue("out", **ring(outbox=7))
    assert await desk.store.registry.numbers() == {"ring-inbox 7": "heir", "ring-outbox 7": "out"}
    await desk.store.catalogue.delete(heir)
    assert await desk.store.registry.numbers() == {"ring-outbox 7": "out"}


async def test_one_of_many_concurrent_claims_on_a_group_succeeds(desk: Desk) -> None:
    others = [desk.another() for _ in range(4)]
    claims = (
        other.store.catalogue.declare(f"q{index}", QueueSpec(**ring(inbox=7)), "test")
        for index, other in enumerate(others)
    )
    answers = await asyncio.gather(*claims, return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["NumberTaken"] * 3 + ["tuple"]

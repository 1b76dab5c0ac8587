"""Test that requests are handled in order, and replies keep that order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from services.kit.session.inflow import MAX_UNANSWERED_RUNS, WORK_A_TURN
from tests.kit.harness import PATIENCE_S, Client, Server, until
from tests.kit.session.line_session import LineSession


@asynccontextmanager
async def conversation(first: str) -> AsyncIterator[tuple[Client, LineSession]]:
    """Return a connection, and its session once it has the first lines, sent in one piece."""
    async with Server(LineSession) as server:  # type: ignore[arg-type]
        client = await server.client()
        session = cast(LineSession, await server.session())
        client.send(first.encode())
        await until(lambda: session.handled)
        yield client, session


async def lines(client: Client, number: int) -> list[str]:
    async with asyncio.timeout(PATIENCE_S):
        return [(await client.reader.readline()).decode().rstrip() for _ in range(number)]


async def test_runs_overlap_and_are_answered_in_order() -> None:
    async with conversation("later\nnow\nlater\n") as (client, session):
        await until(lambda: len(session.handled) == 3)
        session.answer(1, "third")
        assert len(session.conversation.answers) == 3
        session.answer(0, "first")
        assert await lines(client, 3) == ["first", "now", "third"]
        assert not session.conversation.answers


async def test_held_input_is_not_handled() -> None:
    async with conversation("hold\nnow\n") as (client, session):
        assert session.handled == ["hold"]
        assert session.inflow.is_waiting()
        client.send(b"alone\n")  # and later input is behind it
        session.answer(0, "held")
        assert await lines(client, 3) == ["held", "now", "alone"]
        assert not session.inflow.is_waiting()


async def test_exclusive_event_waits_for_earlier_replies() -> None:
    async with conversation("later\nlater\nalone\nnow\n") as (client, session):
        assert session.handled == ["later", "later"]
        session.answer(0, "1")
        assert session.handled == ["later", "later"]
        session.answer(0, "2")
        assert session.handled == ["later", "later", "alone", "now"]
        assert await lines(client, 4) == ["1", "2", "alone", "now"]


async def test_unanswered_runs_are_limited() -> None:
    async with conversation("later\n" * (MAX_UNANSWERED_RUNS + 9)) as (_, session):
        await until(lambda: len(session.handled) == MAX_UNANSWERED_RUNS)  # in turns
        session.answer(0, "1")
        await until(lambda: len(session.handled) == MAX_UNANSWERED_RUNS + 1)  # perhaps in another turn
        while session.owed:
            session.answer(0, "more")
        await until(lambda: len(session.handled) == MAX_UNANSWERED_RUNS + 9)


async def test_congestion_holds_input_until_clear() -> None:
    async with conversation("full\nfull\nnow\n") as (client, session):
        assert session.handled == ["full"]
        session.answer(0, "1")
        assert session.handled == ["full"]
        session.resumes.pop()()
        assert session.handled == ["full", "full"]
        session.answer(0, "2")
        session.resumes.pop()()
        assert await lines(client, 3) == ["1", "2", "now"]


@pytest.mark.parametrize(
    ("chunk", "at_once"),
    [("now\n" * (WORK_A_TURN + 1), WORK_A_TURN), (f"run {WORK_A_TURN - 1}\nnow\nnow\n", 2)],
)
async def test_connection_yields_after_its_turn(chunk: str, at_once: int) -> None:
    async with Server(LineSession) as server:  # type: ignore[arg-type]
        await server.client()
        session = cast(LineSession, await server.session())
        session.received(chunk.encode(), session.conversation.wire.loop_time())
        assert len(session.handled) == at_once
        await until(lambda: len(session.handled) == chunk.count("\n"))


async def test_requests_before_a_violation_are_handled() -> None:
    async with conversation("now\nlater\nbad\nnow\n") as (client, session):
        assert session.handled == ["now", "later"]
        assert session.inflow.violation is not None
        assert session.inflow.violation.reason == "bad_line"
        assert session.conversation.closing
        ends = session.ends
        session.answer(0, "owed")  # pending requests are still answered
        assert session.ends > ends
        assert await lines(client, 2) == ["now", "owed"]


async def test_fin_is_handled_after_all_input() -> None:
    async with conversation("hold\n") as (client, session):
        client.writer.write_eof()
        await until(lambda: session.conversation.wire.peer_ended)  # type: ignore[attr-defined]
        assert not session.inflow.eof_parsed
        session.answer(0, "held")
        assert session.handled == ["hold", "end"]
        assert session.inflow.eof_parsed


async def test_deadline_does_not_apply_while_a_request_is_under_way() -> None:
    async with conversation("hold\nhal") as (_, session):
        await until(lambda: session.buffered == 3)
        assert session.deadline() is None
        session.answer(0, "held")
        due = session.deadline()
        assert due is not None
        session.on_time(due - 1)
        assert session.handled == ["hold"]
        session.on_time(due)
        assert session.handled == ["hold", "late"]


async def test_late_replies_of_a_lost_connection_are_dropped() -> None:
    async with conversation("hold\nnow\n") as (_, session):
        session.conversation.wire.abort()
        await until(lambda: session.conversation.is_lost)
        session.answer(0, "nobody")
        assert session.handled == ["hold"]


async def test_unknown_outcome_closes_without_a_reply() -> None:
    async with conversation("later\nlater\n") as (client, session):
        session.conversation.close_unanswered("outcome_unknown", "asked for it")
        session.answer(1, "second")
        assert session.conversation.closing
        async with asyncio.timeout(PATIENCE_S):
            assert await client.reader.read() == b""

"""Running processes are asked through the store (docs/store.md, Processes)."""

from __future__ import annotations

import asyncio
import json
import signal
import time

import pytest

from services.store.model.errors import StoreUnavailable
from services.store.model.keys import RegistryKeys
from services.store.processes.process_directory import MOST_ARGUMENTS
from services.store.processes.rpc_protocol import MOST_ITEMS
from tests.proxy import Proxy
from tests.servers import Server
from tests.store.desk import Desk, until
from tests.store.member import Program, member
from tests.stores import every_server

KEYS = RegistryKeys()


@every_server
async def test_each_process_answers(desk: Desk, server: Server) -> None:
    async with member(server.url, "tmq") as (one, _), member(server.url, "rqp") as (two, _):
        found = await desk.store.processes.inquire("numbers", {"count": 2, "octets": 1}, 30.0)
        assert found.silent == []
        assert sorted(answer.edge for answer in found.answers) == ["rqp", "tmq"]
        assert {answer.process for answer in found.answers} == {
            p.name for p in await desk.store.processes.running()
        }
        items = [{"number": 0, "text": "x"}, {"number": 1, "text": "x"}]
        assert [(a.items, a.more, a.problem) for a in found.answers] == [(items, False, "")] * 2
        assert one.asked[-1] == two.asked[-1] == {"count": 2, "octets": 1}
    assert server.call("KEYS", "*answers*") == [], "nothing is left behind"


async def test_question_to_one_edge_or_process(desk: Desk, server: Server) -> None:
    async with member(server.url, "tmq") as (one, _), member(server.url, "rqp") as (two, _):
        asked = len(one.asked)
        (answer,) = (await desk.store.processes.inquire("numbers", wait_s=30.0, edge="rqp")).answers
        assert answer.edge == "rqp"
        (again,) = (
            await desk.store.processes.inquire("numbers", wait_s=30.0, process=answer.process)
        ).answers
        assert again.process == answer.process
        assert len(one.asked) == asked
        assert two.asked[-1] == {}


async def test_question_without_addressees_returns_at_once(desk: Desk, server: Server) -> None:
    began = time.monotonic()
    for how in ({}, {"edge": "other"}, {"process": "gone"}):
        assert (await desk.store.processes.inquire("numbers", wait_s=60.0, **how)).answers == []
    async with member(server.url):
        found = await desk.store.processes.inquire("weather", wait_s=60.0)
    assert (found.answers, found.silent) == ([], [])
    assert time.monotonic() - began < 60.0


async def test_limit_bounds_the_items(desk: Desk, server: Server) -> None:
    async with member(server.url):
        for limit, more in ((0, True), (4, True), (5, False), (6, False)):
            (answer,) = (
                await desk.store.processes.inquire("numbers", {"count": 5, "limit": limit}, 30.0)
            ).answers
            assert (len(answer.items), answer.more) == (min(limit, 5), more)
        for wrong in (-1, "1", True, 1.0):
            (answer,) = (await desk.store.processes.inquire("numbers", {"limit": wrong}, 30.0)).answers
            assert answer.problem == "limit must be an integer of 0 or more"


async def test_answer_size_is_bounded(desk: Desk, server: Server) -> None:
    """Check that an answer is bounded, and that further items are not created."""
    async with member(server.url):
        (answer,) = (
            await desk.store.processes.inquire("numbers", {"count": 10**12, "octets": 200}, 60.0)
        ).answers
        assert answer.more
        octets = len(json.dumps(answer.items, separators=(",", ":")))
        assert MOST_ITEMS - 300 < octets <= MOST_ITEMS + 2


async def test_long_answer_does_not_block_the_process(desk: Desk, server: Server) -> None:
    """Check that the event loop has a turn every 25 items of an answer."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with member(server.url) as (one, _):
        at = {}
        counted = one.topics["numbers"]

        def noted(args: dict[str, int]):  # type: ignore[no-untyped-def]
            for item in counted(args):
                at[item["number"]] = turns
                yield item

        one.topics["numbers"] = noted
        other = asyncio.create_task(others())
        await desk.store.processes.inquire("numbers", {"count": 3000}, 60.0)
        other.cancel()
        assert len(at) == 3000
        assert at[2999] - at[0] >= 119


async def test_problems_are_reported(desk: Desk, server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """Check that invalid arguments are reported, internal errors logged, and the next question answered."""
    async with member(server.url):
        (answer,) = (await desk.store.processes.inquire("numbers", {"wrong": True}, 30.0)).answers
        assert (answer.items, answer.problem) == ([], "that is wrong")
        (answer,) = (await desk.store.processes.inquire("numbers", {"count": 3, "bug": 2}, 30.0)).answers
        assert (answer.items, answer.problem) == ([], "internal error; see the log of that process")
        assert "a fault of ours" in caplog.text
        (answer,) = (await desk.store.processes.inquire("numbers", {"count": 3}, 30.0)).answers
        assert len(answer.items) == 3
    with pytest.raises(ValueError, match="octets"):
        await desk.store.processes.inquire("numbers", {"text": "x" * MOST_ARGUMENTS})
    with pytest.raises(ValueError, match="wait"):
        await desk.store.processes.inquire("numbers", wait_s=0)


NOISE = (b"", b"nonsense", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"id":1,"args":1}')


async def test_foreign_messages_are_ignored(desk: Desk, server: Server) -> None:
    async with member(server.url) as (one, _):
        before = one.topics["numbers"]

        def disturbed(args: dict[str, int]):  # type: ignore[no-untyped-def]
            for channel in server.call("PUBSUB", "CHANNELS", "*answers*"):
                for text in NOISE:
                    server.call("PUBLISH", channel, text)
            return before(args)

        for text in NOISE:
            server.call("PUBLISH", KEYS.questions, text)
        one.topics["numbers"] = disturbed
        found = await desk.store.processes.inquire("numbers", wait_s=30.0)
        assert (len(found.answers), found.silent) == (1, [])


# faults


async def test_silent_processes_are_named(desk: Desk, server: Server) -> None:
    """Check that a stopped or killed process is named, others answer, and a late answer is ignored."""
    program = Program(server.url, "rqp")
    try:
        process = await program.known(desk.store)
        async with member(server.url, "tmq"):
            program.signal(signal.SIGSTOP)
            found = await desk.store.processes.inquire("numbers", {"count": 9}, 0.5)
            assert [answer.edge for answer in found.answers] == ["tmq"]
            assert [one.name for one in found.silent] == [process.name]
            asking = asyncio.create_task(desk.store.processes.inquire("numbers", {"count": 2}, 30.0))
            await until(lambda: server.call("PUBSUB", "CHANNELS", "*answers*"))
            program.signal(signal.SIGCONT)  # its late answer to the first question is ignored
            assert [len(answer.items) for answer in (await asking).answers] == [2, 2]
            assert server.call("KEYS", "*answers*") == []
            program.signal(signal.SIGSTOP)
            asking = asyncio.create_task(desk.store.processes.inquire("numbers", wait_s=1.0))
            await until(lambda: server.call("PUBSUB", "CHANNELS", "*answers*"))
            program.signal(signal.SIGKILL)
            found = await asking
            assert [one.name for one in found.silent] == [process.name]
            assert [answer.edge for answer in found.answers] == ["tmq"]
    finally:
        program.end()


async def test_expired_question_is_not_answered(desk: Desk, server: Server) -> None:
    """Check that a process which was stopped for a while skips expired questions."""
    async with member(server.url) as (one, _):
        asked = len(one.asked)
        past = await desk.store.now_ms() - 1
        for until_ms in (past, past + 60_000):
            question = {"id": "x", "until": until_ms, "topic": "numbers", "args": {"until": until_ms}}
            server.call("PUBLISH", KEYS.questions, json.dumps({**question, "edge": "", "process": ""}))
        await until(lambda: len(one.asked) > asked)
        assert one.asked[asked:] == [{"until": past + 60_000}]


async def test_unavailable_store_raises(own_server: Server) -> None:
    async with Desk(own_server) as desk, member(own_server.url) as (_, store):
        own_server.kill9()
        with pytest.raises(StoreUnavailable):
            await desk.store.processes.inquire("numbers")
        own_server.restart()

        async def answers() -> bool:
            try:
                return bool((await store.processes.inquire("numbers", wait_s=0.5)).answers)
            except StoreUnavailable:
                return False

        await until(answers)


async def test_store_failure_while_waiting_raises(own_server: Server) -> None:
    async with Desk(own_server) as desk:
        program = Program(own_server.url, "tmq")
        try:
            await program.known(desk.store)
            program.signal(signal.SIGSTOP)
            asking = asyncio.create_task(desk.store.processes.inquire("numbers", wait_s=60.0))
            await until(lambda: own_server.call("PUBSUB", "CHANNELS", "*answers*"))
            own_server.kill9()
            with pytest.raises(StoreUnavailable):
                await asking
        finally:
            program.end()


async def test_dead_connection_is_replaced(
    desk: Desk, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a process probes a silent store and subscribes again, without FIN or reset."""
    monkeypatch.setattr("services.store.processes.rpc_server.QUIET_S", 0.2)
    async with Proxy(server.port) as proxy, member(proxy.url):
        proxy.freeze()

        async def heard() -> bool:
            return bool((await desk.store.processes.inquire("numbers", wait_s=0.3)).answers)

        await until(heard)

"""Order of messages when the store refuses for a while, or on an internal error (ring.md 5.4)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from protos.ring import Frame, Operation, encode_frame
from services.ring.node.queues.serving import Serving
from services.ring.node.relay import route_actions as relaying
from services.store.model import records
from services.store.model.errors import StoreFull
from services.store.pipeline.async_client import AsyncClient
from tests.live import Log, until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Member, Start, local_errors
from tests.ring.users.test_requests import OK, Successor, answer


def push(number: int, queue: bytes = b"orders") -> bytes:
    return encode_frame(Frame(Operation.PUSH, b"client", queue, b"%d" % number, number.to_bytes(16)))


async def takes(node: Member) -> bool:
    """Return whether the store takes messages; the node detects it a few ms later."""
    queue = await node.store.catalogue.find("filler")
    refused = await AsyncClient(node.service.pipe(queue)).publish(queue, [records.encode(b"")], "test")
    assert all(isinstance(error, StoreFull) for _, error in refused)
    return not refused


async def takes_nothing(node: Member) -> bool:
    return not await takes(node)


async def test_requests_wait_behind_a_refused_push(start: Start, new_server: NewServer) -> None:
    """Check that requests wait behind a refused push (5.4).

    The predecessor sends ahead; the full store takes messages again before the first push is retried.
    """
    server = await new_server()
    node = await start(server, b"node")
    await node.declare("orders")
    await node.declare("filler")
    ring = Successor(node)
    await ring.asks(Operation.PUSH, b"orders", 1, b"1")
    safe: list[int] = []

    def receive(*numbers: int) -> None:
        for number in numbers:
            node.users.user_sink.received(push(number), lambda number=number: safe.append(number))

    server.call("CONFIG", "SET", "maxmemory", int(server.info("memory")["used_memory"]) // 2)
    await until(lambda: takes_nothing(node))
    refused = node.store_events("store_full")
    receive(2, 3)
    await until(lambda: node.store_events("store_full") > refused)
    server.call("CONFIG", "SET", "maxmemory", "0")
    await until(lambda: takes(node))
    receive(4, 5)
    await until(lambda: safe == [2, 3, 4, 5])
    assert await node.bodies("orders") == [b"1", b"2", b"3", b"4", b"5"]
    assert [answer(frame) for frame in ring.got] == [OK] * 5


async def test_refused_push_is_given_up(
    start: Start, new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a refused push is given up (4.5).

    The predecessor has broken the link by then, and sends it and the messages behind it again.
    """
    server = await new_server()
    node = await start(server, b"node")
    await node.declare("orders")
    await node.declare("filler")
    await Successor(node).asks(Operation.PUSH, b"orders", 1, b"1")
    monkeypatch.setattr(relaying, "PATIENCE_S", 0.3)
    safe: list[int] = []

    def receive(*numbers: int) -> None:
        for number in numbers:
            node.users.user_sink.received(push(number), lambda number=number: safe.append(number))

    with server.configured(maxmemory="1mb"):
        await until(lambda: takes_nothing(node))
        receive(2, 3)
        await until(lambda: node.count("unsafe") == 2)
        await until(lambda: len(node.users.user_sink) == 0)
    await until(lambda: takes(node))
    receive(2, 3)
    await until(lambda: safe == [2, 3])
    assert await node.bodies("orders") == [b"1", b"2", b"3"]


async def test_internal_error_affects_one_message(
    new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an internal error affects one message (2.2).

    Neither it nor messages behind it are answered; the next link goes on.
    """
    member = Member((await new_server()).url, b"node")
    log = Log()
    logging.getLogger().addHandler(log)
    try:
        node = await member.start()
        await node.declare("orders")
        await node.declare("broken")
        ring = Successor(node)
        carry_out = Serving.carry_out

        def fail(self: Serving, frame: Frame, *rest: Any) -> None:
            assert frame.queue != b"broken"
            carry_out(self, frame, *rest)

        monkeypatch.setattr(Serving, "carry_out", fail)
        safe: list[int] = []
        node.users.user_sink.received(push(1, b"broken"), lambda: safe.append(1))
        node.users.user_sink.received(push(2), lambda: safe.append(2))
        await until(lambda: safe == [2])
        assert len(node.users.user_sink) == 0
        assert [answer(frame) for frame in ring.got] == [OK]
        assert len(log.tracebacks()) == 1
        assert node.count("unsafe") == 1
        assert local_errors(node) == 1
    finally:
        await member.close()
        await asyncio.sleep(0)
        logging.getLogger().removeHandler(log)

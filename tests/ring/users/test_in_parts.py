"""A USER for the inbox and the next node is safe once both parts are done, and ends once (ring.md 2.2, 5.5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from protos.ring import Frame, Operation, encode_frame
from services.ring.node.boxes import inbox
from services.ring.node.counts import UserOutcome
from services.ring.node.outgoing import writer as writer
from tests.live import Log, until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Member, Start, local_errors

INBOX = {"ring": {"inbox": 1}}


async def bind_inbox(node: Member) -> None:
    await node.declare("in", bindings=INBOX)
    await until(lambda: node.users.bindings.inbox)


async def test_forwarded_message_without_inbox_delivery_is_not_safe(
    start: Start, new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a forwarded message without inbox delivery is not safe (2.2).

    The inbox has given up when it goes on; its repeat reaches the inbox, too.
    """
    server = await new_server()
    node = await start(server, b"node", forward_user=True)
    await bind_inbox(node)
    monkeypatch.setattr(inbox, "PATIENCE_S", -1.0)  # the loop's clock may stand still until the refusal
    safe: list[bytes] = []

    def receive() -> None:
        node.users.user_sink.received(b"news", lambda: safe.append(b"news"))

    with server.configured(maxmemory="1mb"):
        receive()
        await until(lambda: node.users.readiness.unready() is not None)
    await until(lambda: len(node.users.user_sink) == 0)
    assert (node.count(UserOutcome.PASSED_ON), node.count(UserOutcome.UNSAFE)) == (1, 1)
    assert safe == []
    receive()
    await until(lambda: safe == [b"news"])
    assert await node.bodies("in") == [b"news"]


# an internal error


def stumbling(work: Callable[..., None]) -> Callable[..., None]:
    """Return the same function with an internal error in the first message that has `broken` in it."""
    broken = [1]

    def stumble(part: object, what: object, *more: Any) -> None:
        if "broken" in repr(what) and broken:
            broken.pop() // 0
        work(part, what, *more)

    return stumble


@pytest.fixture
async def faulty(new_server: NewServer) -> AsyncIterator[tuple[Member, Log]]:
    """Start a node with an inbox that may fail."""
    node = Member((await new_server()).url, b"node", forward_user=True)
    log = Log()
    logging.getLogger().addHandler(log)
    await bind_inbox(await node.start())
    yield node, log
    await node.close()
    await asyncio.sleep(0)
    logging.getLogger().removeHandler(log)


@pytest.mark.parametrize("begun", [0, 1])
async def test_internal_error_ends_a_job_once(
    faulty: tuple[Member, Log], begun: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an internal error ends a job once (2.2).

    Parts that never began are not waited for, and a part still under way ends nothing twice.
    """
    node, log = faulty
    part, verb = ((inbox.Inbox, "deliver"), (writer.QueueWriter, "put"))[begun]
    monkeypatch.setattr(part, verb, stumbling(getattr(part, verb)))
    safe: list[bytes] = []
    for payload in (b"broken", b"behind"):
        node.users.user_sink.received(payload, lambda payload=payload: safe.append(payload))  # type: ignore[misc]
    await until(lambda: safe == [b"behind"])
    await until(lambda: node.count(UserOutcome.DELIVERED) == 1 + begun)
    assert node.count(UserOutcome.UNSAFE) == 1
    assert len(log.tracebacks()) == 1
    assert local_errors(node) == 1
    assert len(node.users.user_sink) == 0


async def test_failed_message_is_handled_when_repeated(
    faulty: tuple[Member, Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a failed message is handled when repeated (2.2).

    The predecessor sends it on the next link, without waiting for an earlier one (4.5).
    """
    node, log = faulty
    monkeypatch.setattr(writer.QueueWriter, "put", stumbling(writer.QueueWriter.put))
    reply = encode_frame(Frame(Operation.OK, b"other", b"orders", b"broken", b"1" * 16))
    safe: list[int] = []
    for turn in range(2):
        node.users.user_sink.received(reply, lambda turn=turn: safe.append(turn))  # type: ignore[misc]
    await until(lambda: safe == [1])
    assert (node.count(UserOutcome.PASSED_ON), node.count(UserOutcome.UNSAFE)) == (1, 1)
    assert len(log.tracebacks()) == 1

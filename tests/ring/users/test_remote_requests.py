"""Requests of our own clients around the ring, and their outcomes (ring.md 5.3, 5.4)."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace

import pytest

from protos.ring import MAX_RING_MESSAGE, MAX_SENDER, Frame, Operation, encode_frame, parse_frame, resent
from services.ring import error_texts as words
from services.ring.node.counts import UserOutcome
from services.ring.node.queues import remote_requests as around
from services.ring.remote_queues import NotDone, RemoteMessage
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Member, Ring, Start
from tests.servers import Server


def sent(node: Member) -> list[Frame]:
    """Return all messages for its successor, which answers at once."""
    frames = []
    for outgoing_message in node.users.user_source.take(1000):
        frame = parse_frame(outgoing_message.payload)
        assert frame is not None
        frames.append(frame)
        outgoing_message.acknowledged()
    return frames


def receive(node: Member, frame: Frame) -> None:
    node.users.user_sink.received(encode_frame(frame), lambda: None)


async def test_request_without_a_link_times_out(start: Start, server: Server) -> None:
    """Check that a request without a link times out, and is not sent once there is a link (5.3)."""
    node = await start(server, b"a", timeout_s=0.2)
    answers = await asyncio.gather(node.push(b"q", b"x"), node.pull(b"q"), node.destroy(b"q"))
    assert answers == [NotDone("timeout")] * 3
    assert (node.count(UserOutcome.ASKED), node.count(UserOutcome.TIMED_OUT)) == (3, 3)
    assert sent(node) == []
    assert len(node.users.remote_requests) == 0


async def test_timed_out_requests_are_dropped(start: Start, server: Server) -> None:
    """Check that timed-out requests are dropped.

    At most 32 MiB of requests wait (docs/ring.md, Limits), and a ring may be down for any time.
    """
    node = await start(server, b"a", timeout_s=0.2)
    for turn in range(2):
        answers = await asyncio.gather(*(node.push(b"q", b"%d" % n) for n in range(5)))
        assert answers == [NotDone("timeout")] * 5
        gc.collect()  # remains of other tests
        kept = [each for each in gc.get_objects() if isinstance(each, around.Asked)]
        assert kept == [], f"turn {turn}"


async def test_link_in_time_takes_waiting_requests(
    start: Start, server: Server, new_server: NewServer
) -> None:
    one, other = await start(server, b"a"), await start(await new_server(), b"b")
    await other.declare("q")
    asked = asyncio.ensure_future(one.push(b"q", b"x"))
    await asyncio.sleep(0)
    Ring([one, other])
    assert await asked is None


async def test_a_late_reply_is_dropped_unsettled(start: Start, server: Server) -> None:
    node = await start(server, b"a", timeout_s=0.2)
    asked = asyncio.ensure_future(node.pull(b"q"))
    await asyncio.sleep(0)
    (pull,) = sent(node)
    assert await asked == NotDone("timeout")
    receive(node, Frame(Operation.OK, b"a", b"q", b"late", pull.request_id))
    await until(lambda: node.count(UserOutcome.LATE) == 1)
    await asyncio.sleep(0.1)
    assert sent(node) == []


async def test_first_of_two_replies_counts(start: Start, server: Server) -> None:
    node = await start(server, b"a")
    asked = asyncio.ensure_future(node.pull(b"q"))
    await asyncio.sleep(0)
    (pull,) = sent(node)
    receive(node, Frame(Operation.OK, b"a", b"q", b"first", pull.request_id))
    receive(node, Frame(Operation.ERROR, b"a", b"q", b"second", pull.request_id))
    brought = await asked
    assert isinstance(brought, RemoteMessage)
    assert brought.body == b"first"
    assert (node.count(UserOutcome.ANSWERED), node.count(UserOutcome.LATE)) == (1, 1)


async def test_error_replies_are_passed_unchanged(start: Start, server: Server) -> None:
    """Check that ERROR replies are passed on unchanged as UTF-8; other octets are replaced (5.1)."""
    node = await start(server, b"a")
    for message, wanted in (
        (b"lleno \xc3\xa1", "lleno \u00e1"),
        (b"\xff", "\ufffd"),
        (b"", "refused without a reason"),
    ):
        asked = asyncio.ensure_future(node.push(b"q", b"x"))
        await asyncio.sleep(0)
        (push,) = sent(node)
        receive(node, Frame(Operation.ERROR, b"a", b"q", message, push.request_id))
        assert await asked == NotDone(wanted)


async def test_request_ids_are_unique(start: Start, server: Server) -> None:
    node = await start(server, b"a", timeout_s=0.1)
    asked = [asyncio.ensure_future(node.push(b"q", b"same")) for _ in range(500)]
    await asyncio.sleep(0)
    assert len({frame.request_id for frame in sent(node)}) == 500
    await asyncio.gather(*asked)


async def test_oversized_request_is_refused_at_once(start: Start, server: Server) -> None:
    node = await start(server, b"a")
    refused = await node.push(b"q", bytes(MAX_RING_MESSAGE + 1))
    assert refused == NotDone("message is too large for the ring: at most 15865 octets")


async def test_internal_error_answers_the_client(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """Check that an internal error answers the client (5.8).

    Example: a name that fits no frame, which settings do not allow (1.2).
    """
    node = await Member(server.url, b"a" * (MAX_SENDER + 1)).start()
    try:
        async with asyncio.timeout(5):
            answers = await asyncio.gather(node.push(b"q", b"x"), node.pull(b"q"), node.destroy(b"q"))
    finally:
        await node.close()
    assert answers == [NotDone(words.FAULT)] * 3
    assert node.metrics.registry.get_sample_value("penstock_local_errors_total", {"edge": "ring"}) == 3
    assert len([line for line in caplog.records if line.exc_info]) == 3


async def test_waiting_remote_requests_are_limited(
    start: Start, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await start(server, b"a", timeout_s=0.3)
    monkeypatch.setattr(around, "MAX_WAITING", 3)
    asked = [asyncio.ensure_future(node.push(b"q", b"x")) for _ in range(5)]
    answers = await asyncio.gather(*asked)
    assert answers == [NotDone("timeout")] * 3 + [NotDone("too many requests are waiting for the ring")] * 2
    monkeypatch.setattr(around, "MAX_WAITING_BYTES", 2000)
    asked = [asyncio.ensure_future(node.push(b"q", bytes(1000))) for _ in range(3)]
    answers = await asyncio.gather(*asked)
    assert answers == [NotDone("timeout")] * 2 + [NotDone("too many requests are waiting for the ring")]


async def test_waiting_requests_fail_at_the_end(start: Start, server: Server) -> None:
    node = await start(server, b"a")
    asked = asyncio.ensure_future(node.push(b"q", b"x"))
    await asyncio.sleep(0)
    await node.close()
    assert await asked == NotDone("unknown: this node is stopping, and no reply has come")


async def test_unanswered_request_is_resent_while_its_client_waits(start: Start, server: Server) -> None:
    """Check that an unanswered request is sent again while its client waits (2.2, 5.3)."""
    node = await start(server, b"a", timeout_s=0.5)
    asked = asyncio.ensure_future(node.push(b"q", b"x"))
    await asyncio.sleep(0)
    (outgoing_message,) = node.users.user_source.take(10)
    outgoing_message.returned()
    (again,) = node.users.user_source.take(10)
    assert again.payload == resent(outgoing_message.payload)
    assert await asked == NotDone("timeout")
    again.returned()
    assert node.users.user_source.take(10) == []


async def test_lone_node_fails_requests_early(
    start: Start, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a lone node fails requests early (5.3)."""
    monkeypatch.setattr(around, "ALONE_S", 0.2)
    node = await start(server, b"a")
    others: list[bytes] = []
    node.users.remote_requests.is_alone = lambda: not others
    assert await node.push(b"q", b"x") == NotDone("no node serves this queue")
    assert sent(node) == []
    assert node.count(UserOutcome.TIMED_OUT) == 0


async def test_lone_node_waits_if_another_node_appears(
    start: Start, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a lone node waits if another node appears (5.3)."""
    monkeypatch.setattr(around, "ALONE_S", 0.2)
    node = await start(server, b"a", timeout_s=0.6)
    others: list[bytes] = []
    node.users.remote_requests.is_alone = lambda: not others
    asked = asyncio.ensure_future(node.push(b"q", b"x"))
    await asyncio.sleep(0)
    others.append(b"b")
    assert await asked == NotDone("timeout")


async def test_resent_request_that_returns_unserved_has_unknown_outcome(start: Start, server: Server) -> None:
    """Check that a resent request that returns unserved has an unknown outcome (5.3).

    The node that carried it out may have died before replying; a request sent once was not done.
    """
    node = await start(server, b"a")
    asked = asyncio.ensure_future(node.push(b"q", b"x"))
    await asyncio.sleep(0)
    (push,) = sent(node)
    receive(node, replace(push, resent=True))
    assert await asked == NotDone("unknown: a link broke on its way, and no node serves this queue now")
    asked = asyncio.ensure_future(node.push(b"q", b"x"))
    await asyncio.sleep(0)
    (push,) = sent(node)
    receive(node, push)
    assert await asked == NotDone("no node serves this queue")


@pytest.mark.parametrize("restarts", [False, True])
async def test_resent_request_is_marked(start: Start, server: Server, restarts: bool) -> None:
    """Check that a resent request is marked (5.3).

    This applies after a break, and after a restart of a node that had perhaps sent it; the store has it as it came.
    """
    node = await start(server, b"b")
    push = Frame(Operation.PUSH, b"a", b"elsewhere", b"x", bytes(range(16)))
    receive(node, push)
    outgoing_messages = await until(lambda: node.users.user_source.take(10))
    assert [parse_frame(outgoing_message.payload) for outgoing_message in outgoing_messages] == [push]
    await until(lambda: is_leased(node))
    outgoing_messages[0].returned()
    if restarts:
        await node.close()
        node = await start(server, b"b")
    (again,) = await until(lambda: node.users.user_source.take(10))
    assert parse_frame(again.payload) == replace(push, resent=True)
    again.acknowledged()
    await until(node.has_nothing_to_send)


async def is_leased(node: Member) -> bool:
    """Return whether the outgoing message is in the store, and leased."""
    return bool((await node.stats(node.users.queue_name))["in_flight"] == 1)

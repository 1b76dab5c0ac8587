"""A message sent early and then refused by the store is not sent again at each retry (ring.md 4.5)."""

from __future__ import annotations

import pytest

from protos.ring import Frame, Operation, encode_frame
from services.ring.node.counts import UserOutcome
from services.ring.node.outgoing import writer as writer
from tests.live import until
from tests.ring.users.members import Member, Start
from tests.ring.users.test_early import Hand, payloads, quiet
from tests.ring.users.test_marks import OUTBOX
from tests.ring.users.test_without_id import keep_replies
from tests.servers import Server

PUSH = encode_frame(Frame(Operation.PUSH, b"client", b"missing", b"x", b"1" * 16))
TRIES = 4


def refusals(node: Member, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that grows with each refusal."""
    results: list[None] = []
    outgoing = node.users.outgoing
    mistrust = outgoing.mistrust

    def counted() -> None:
        results.append(None)
        mistrust()

    monkeypatch.setattr(outgoing, "mistrust", counted)
    return results


class Eager:
    """A successor with room that takes messages as soon as it is notified."""

    def __init__(self, node: Member) -> None:
        self._user_source = node.users.user_source
        self.taken: list[bytes] = []
        self._user_source.on_ready(self._take)

    def _take(self) -> None:
        self.taken += payloads(self._user_source.take(10))


async def test_forwarded_message_refused_after_leaving_is_sent_again(
    start: Start, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await start(server, b"node")
    hand, refused, successor = Hand(node), refusals(node, monkeypatch), Eager(node)
    await quiet(node)
    await keep_replies(node)
    hand.sends(b"1", b"2")
    await until(lambda: len(refused) >= TRIES)
    assert successor.taken == [b"1", b"2"]
    await keep_replies(node, False)
    await until(lambda: hand.safe == [b"1", b"2"] and len(successor.taken) == 4)
    await quiet(node)
    server.stop()
    hand.sends(b"3")
    await until(lambda: b"3" in successor.taken)  # before it is stored, as before
    server.cont()
    assert successor.taken == [b"1", b"2", b"1", b"2", b"3"]


async def test_begun_message_refused_after_leaving_is_sent_again(
    start: Start, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a begun message refused after leaving is sent again: it stays in the outbox (5.5)."""
    node = await start(server, b"node")
    refused, successor = refusals(node, monkeypatch), Eager(node)
    await node.declare("out", bindings=OUTBOX)
    await until(lambda: node.users.bindings.outbox)
    await quiet(node)
    await keep_replies(node)
    await node.put("out", b"1")
    await until(lambda: len(refused) >= TRIES)
    assert successor.taken == [b"1"]
    await keep_replies(node, False)
    await until(lambda: node.count(UserOutcome.BEGUN) == 1 and len(successor.taken) == 2)
    assert successor.taken == [b"1", b"1"]


async def test_joined_copy_is_as_safe_as_the_first(
    start: Start, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a joined copy is as safe as the first: neither is answered, and both are sent again (4.5)."""
    monkeypatch.setattr(writer, "PATIENCE_S", 0.6)
    node = await start(server, b"node")
    hand = Hand(node)
    await quiet(node)
    await keep_replies(node)
    hand.sends(PUSH, PUSH)
    await until(lambda: node.count(UserOutcome.UNSAFE) == 2)
    assert hand.safe == []
    await keep_replies(node, False)
    hand.sends(PUSH)
    await until(lambda: hand.safe == [PUSH])

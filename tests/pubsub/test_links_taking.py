"""What the follower's side of a link asks of its store, and remembers of whom it follows (pubsub.md 4.3, 4.5)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from protos.pubsub import Have
from services.kit.session.session import Peer
from services.pubsub.edge import RunningPubsub
from services.pubsub.links.hub import CLONE_BEATS, LinkHub
from services.pubsub.links.taking import CALL_BYTES
from services.store.log.log import Subscriptions
from services.store.log.replica import Arrived
from tests.live import until
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import Neighbour, messages
from tests.servers import Server

BODY = b"x" * 400_000


def hub_of(edge: LiveEdge) -> LinkHub:
    assert isinstance(edge.running, RunningPubsub)
    return edge.running._hub


async def test_one_call_stores_about_a_mebibyte(edge: LiveEdge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever has gathered while the store was busy: others have their turn between two calls."""
    neighbour = await Neighbour.meet(edge)
    replica = hub_of(edge).replica
    accept, is_free, calls = replica.accept, asyncio.Event(), list[list[int]]()

    async def accept_slowly(items: list[Any], known: Subscriptions) -> tuple[int, int]:
        calls.append([len(item.block) for item in items if isinstance(item, Arrived)])
        await is_free.wait()
        return await accept(items, known)

    monkeypatch.setattr(replica, "accept", accept_slowly)
    for number in range(1, 9):
        await neighbour.entry(number, b"t", b"%d %b" % (number, BODY))
    await until(lambda: calls)
    (connection,) = edge.connections("link")
    taker: Any = connection._session._taker  # type: ignore[attr-defined]
    await until(lambda: len(calls[0]) + len(taker._items) == 8)
    is_free.set()

    async def has_all() -> bool:
        return len(await messages(edge)) == 8

    await until(has_all)
    assert sum(map(len, calls)) == 8
    assert max(map(sum, calls)) < CALL_BYTES + len(BODY) + 100


async def test_links_begin_anew_where_the_stores_server_is_another_one(
    server: Server, edge: LiveEdge
) -> None:
    """4.4, 4.5: what was said is not so any more; also on a link that follows nobody, for another one does."""
    holder = await Neighbour.meet(edge)
    spare = Neighbour(await edge.client("link"), holder.name)
    await spare.say(b"HAVE 1 other inc1 -")
    await spare.hear(b"HAVE")
    server.call("HSET", edge.service.log.keys.log[1], "server", "another one")
    await holder.closed()
    await spare.closed()
    assert edge.refusals() == {}  # it was not for their silence
    again = await Neighbour.meet(edge)
    assert again.have.split(b" ")[:3] == holder.have.split(b" ")[:3]
    assert again.have.split(b" ")[3] != holder.have.split(b" ")[3]


def test_a_link_that_ends_late_hides_nothing_of_a_newer_one(edge: LiveEdge) -> None:
    """4.5: its lease ran out and another link of this process has it: whoever bears the same id is still found out."""
    hub, peer = hub_of(edge), Peer("192.0.2.1", 7172)
    old, new, clone = (Have(b"other", incarnation, {}) for incarnation in (b"i1", b"i1", b"i2"))
    hub.follows(old)
    hub.follows(new)
    hub.follows_no_more(old)
    for beats in range(CLONE_BEATS + 2):
        hub.tell_clone(peer, clone, beats * hub.settings.beat_s)
    assert len(edge.log.events("link_to_clone")) == 1
    hub.follows_no_more(new)
    assert hub._followed == {}


async def test_who_is_not_followed_any_more_is_no_original(edge: LiveEdge) -> None:
    neighbour = await Neighbour.meet(edge)
    assert list(hub_of(edge)._followed) == [b"other"]
    neighbour.client.close()
    await until(lambda: not hub_of(edge)._followed)

"""The follower's side of a link and its store (pubsub.md 4.3, 4.5)."""

from __future__ import annotations

from protos.pubsub import Have
from services.kit.session.session import Peer
from services.pubsub.edge import RunningPubsub
from services.pubsub.links.hub import CLONE_BEATS, LinkHub
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import Neighbour
from tests.servers import Server

BODY = b"x" * 400_000


def hub_of(edge: LiveEdge) -> LinkHub:
    assert isinstance(edge.running, RunningPubsub)
    return edge.running.hub


async def test_links_are_set_up_again_after_a_failover(server: Server, edge: LiveEdge) -> None:
    """Check that links are set up again after a failover, also a standby link (4.4, 4.5).

    Their greeting no longer matches the store.
    """
    holder = await Neighbour.meet(edge)
    spare = Neighbour(await edge.client("link"), holder.name)
    await spare.say(b"HAVE 1 other inc1 -")
    await spare.hear(b"HAVE")
    server.call("HSET", edge.service.log.keys.log[1], "server", "another one")
    await holder.closed()
    await spare.closed()
    assert edge.refusals() == {}  # silence was not the reason
    again = await Neighbour.meet(edge)
    assert again.have.split(b" ")[:3] == holder.have.split(b" ")[:3]
    assert again.have.split(b" ")[3] != holder.have.split(b" ")[3]


def test_link_that_ends_late_does_not_hide_a_newer_one(edge: LiveEdge) -> None:
    """Check that a link that ends late does not hide a newer one (4.5).

    Its lease expired and another link of this process has it: a clone is still detected.
    """
    hub, peer = hub_of(edge), Peer("192.0.2.1", 7172)
    old, new, clone = (Have(b"other", incarnation, {}) for incarnation in (b"i1", b"i1", b"i2"))
    hub.follows(old)
    hub.follows(new)
    hub.follows_no_more(old)
    for beats in range(CLONE_BEATS + 2):
        hub.warn_clone(peer, clone, beats * hub.settings.beat_s)
    assert len(edge.log.events("link_to_clone")) == 1

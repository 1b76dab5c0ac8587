"""The text pub/sub edge's entry point for the kit."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from services.kit.config import Flag
from services.kit.edge import Edge, EdgeContext
from services.kit.net import DialSettings, shell_example
from services.pubsub.links.hub import LinkHub
from services.pubsub.links.neighbours import Neighbours
from services.pubsub.links.session import LinkSession
from services.pubsub.service import PubsubService
from services.pubsub.session import TextSession
from services.pubsub.settings import LinkSettings, PubsubSettings, TextListener
from services.pubsub.subscription_inspector import TOPIC, subscriptions
from services.store.known_peers import KnownPeers
from services.store.model import LOG_DOMAIN, PeerProtocol

SettingsT = TypeVar("SettingsT", TextListener, DialSettings)


class RunningPubsub:
    """The running edge: the service for clients and the links to neighbours."""

    def __init__(
        self, service: PubsubService, hub: LinkHub, neighbours: Neighbours, peers: KnownPeers
    ) -> None:
        self.service = service
        self.readiness = service.readiness
        self.hub = hub
        self.neighbours = neighbours
        self.peers = peers

    async def stop_taking(self) -> None:
        """Stop dialling neighbours. Subscribers are served until their connections are closed."""
        await self.neighbours.close()

    async def close(self) -> None:
        """End all links, then the service."""
        await self.peers.close()
        await self.neighbours.close()
        await self.hub.close()
        await self.service.close()


async def start(context: EdgeContext[PubsubSettings]) -> RunningPubsub:
    """Start the listeners, the service and the links."""
    settings = context.settings
    store = settings.store.store(
        context.store_url, context.name, settings.request_timeout_s, context.metrics.store_observer
    )
    service = PubsubService(settings, store, context.metrics)
    context.add_topic(TOPIC, lambda args: subscriptions(service.subscribers, args))
    store.start_serving(LOG_DOMAIN)
    hub = LinkHub(service)
    for name, listener in settings.listeners.items():
        if listener.serves == "clients":
            context.listen(name, listener, partial(TextSession, service, listener))
        else:
            context.listen(name, for_links(listener, settings.link), partial(LinkSession, hub))
    dialler = context.dial("neighbour", for_links(settings.link.dial, settings.link))
    neighbours = Neighbours(hub, dialler, settings.neighbours)
    peers = KnownPeers(store, context.metrics.local_errors.inc)
    peers.on_change.append(lambda: neighbours.follow(peers.addresses(PeerProtocol.TEXT)))
    service.start()
    neighbours.follow(())
    peers.start()
    return RunningPubsub(service, hub, neighbours, peers)


def for_links(settings: SettingsT, link: LinkSettings) -> SettingsT:
    """Return the settings with a write buffer for the largest entry.

    Output must never hold up a link's input, or two links could wait for each other for ever.
    """
    return settings.model_copy(update={"write_buffer_bytes": link.max_line_bytes + (1 << 20)})


def example(settings: PubsubSettings) -> list[str]:
    """Return bash commands that subscribe and send."""
    send = r"printf 'SUBSCRIBE 1 news\nSEND news hello\n'"
    return [
        shell_example(listener, send, "timeout 2 head -n3", show="", quote='"')
        for listener in settings.listeners.values()
        if listener.serves == "clients"
    ]


NEIGHBOUR = Flag(
    "--neighbour",
    "neighbours",
    "HOST:PORT",
    "a pub/sub server on another store to link with",
    True,
)
EDGE = Edge("pubsub", PubsubSettings, start, example, (NEIGHBOUR,))

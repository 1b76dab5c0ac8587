"""The ring edge as the kit starts it."""

from __future__ import annotations

from functools import partial

from services.kit.config import SettingsError
from services.kit.edge import Edge, EdgeContext
from services.kit.net import ListenerSettings
from services.ring.clients.session import ClientSession
from services.ring.node.running import LISTENER, RunningNode, start_node
from services.ring.service import RingService
from services.ring.settings import RingSettings


class RunningRing:
    def __init__(self, service: RingService, node: RunningNode | None) -> None:
        """node: none where the listener `ring` is off."""
        self.service = service
        self.readiness = service.readiness
        self.node = node

    async def stop_taking(self) -> None:
        """Clients are served what they ask for: for them the drain of their sessions is enough."""
        if self.node is not None:
            await self.node.stop_taking()

    async def close(self) -> None:
        if self.node is not None:
            await self.node.close()
        await self.service.close()


async def start(context: EdgeContext[RingSettings]) -> RunningRing:
    settings = context.settings
    store = settings.store.store(
        context.store_url, context.name, settings.request_timeout_s, context.metrics.store_observer
    )
    service = RingService(settings, store, context.metrics)
    store.start_serving(settings.clients.create.domain)
    for name, listener in client_ports(settings).items():
        context.listen(name, listener, partial(ClientSession, service, settings.client_limits()))
    service.tally.start()
    try:
        node = await start_node(context, service) if LISTENER in settings.listeners else None
    except SettingsError:
        await service.close()
        raise
    return RunningRing(service, node)


def example(settings: RingSettings) -> list[str]:
    """create_queue `hello` with nothing but bash; answered 00 00 00 05: made, or 00 00 00 04: it is there already."""
    request = r'printf "\0\0\0\0me"; head -c253 /dev/zero; printf hello; head -c254 /dev/zero'
    talk = f"{{ {request}; }} >&3; head -c4 <&3 | od -An -tx1"
    return [
        f"bash -c 'exec 3<>/dev/tcp/{listener.host}/{listener.port}; {talk}'"
        for listener in client_ports(settings).values()
    ]


def client_ports(settings: RingSettings) -> dict[str, ListenerSettings]:
    """All listeners but the predecessor's."""
    return {name: listener for name, listener in settings.listeners.items() if name != LISTENER}


EDGE = Edge("ring", RingSettings, start, example)

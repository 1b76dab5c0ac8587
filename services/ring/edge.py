"""Start and stop the ring edge for the kit."""

from __future__ import annotations

from functools import partial

from services.kit.config import SettingsError
from services.kit.edge import Edge, EdgeContext
from services.kit.net import ListenerSettings, shell_example
from services.ring.clients.session import ClientSession
from services.ring.node.running import LISTENER, RunningNode, start_node
from services.ring.service import RingService
from services.ring.settings import RingSettings


class RunningRing:
    """The client port's service, and the node if the listener `ring` is on."""

    def __init__(self, service: RingService, node: RunningNode | None) -> None:
        self.service = service
        self.readiness = service.readiness
        self.node = node

    async def stop_taking(self) -> None:
        """Stop the node's new work. Client sessions need nothing here: their drain is enough."""
        if self.node is not None:
            await self.node.stop_taking()

    async def close(self) -> None:
        """Leave the ring, then close the store."""
        if self.node is not None:
            await self.node.close()
        await self.service.close()


async def start(context: EdgeContext[RingSettings]) -> RunningRing:
    """Open the client ports and start the node. Raises SettingsError."""
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
    """Return shell commands that send create_queue `hello`; the answer is 00 00 00 05 (made) or 04 (exists)."""
    request = r'printf "\0\0\0\0me"; head -c253 /dev/zero; printf hello; head -c254 /dev/zero'
    ports = client_ports(settings).values()
    return [shell_example(listener, f"{{ {request}; }}", "head -c4") for listener in ports]


def client_ports(settings: RingSettings) -> dict[str, ListenerSettings]:
    """Return all listeners except the one for predecessors."""
    return {name: listener for name, listener in settings.listeners.items() if name != LISTENER}


EDGE = Edge("ring", RingSettings, start, example)

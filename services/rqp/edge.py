"""The RQP edge as the kit starts it."""

from __future__ import annotations

from functools import partial

from services.kit.edge import Edge, EdgeContext
from services.rqp.cast.agent import CastAgent
from services.rqp.mca.receiver import Receiver
from services.rqp.mca.sender import McaSender
from services.rqp.mca.session import McaSession
from services.rqp.names import LookUp, look_up
from services.rqp.service import RqpService
from services.rqp.settings import RqpSettings


class RunningRqp:
    def __init__(self, service: RqpService) -> None:
        self.service = service
        self.readiness = service.readiness

    async def stop_taking(self) -> None:
        await self.service.stop_taking()

    async def close(self) -> None:
        await self.service.close()


async def start(context: EdgeContext[RqpSettings], look_up: LookUp = look_up) -> RunningRqp:
    """look_up: what finds the addresses behind names."""
    settings = context.settings
    store = settings.store.store(
        context.store_url, context.name, settings.request_timeout_s, context.metrics.store_observer
    )
    service = RqpService(settings, store, context.metrics, look_up)
    receiver = Receiver(service)
    for name, listener in settings.listeners.items():
        context.listen(name, listener, partial(McaSession, receiver))
    service.agents.append(McaSender(service, context.dial("mca-out", settings.mca.dial)))
    service.agents.append(CastAgent(service))
    store.start_serving()
    service.start()
    return RunningRqp(service)


def example(settings: RqpSettings) -> list[str]:
    """Asks with nothing but bash whether queue 7 is available; if it is, the answer is 40 00 00 00 70."""
    request = r'printf "\x30\0\0\0\x70" >&3; timeout 2 head -c5 <&3 | od -An -tx1'
    return [
        f"bash -c 'exec 3<>/dev/tcp/{listener.host}/{listener.port}; {request}'"
        for listener in settings.listeners.values()
    ]


EDGE = Edge("rqp", RqpSettings, start, example)

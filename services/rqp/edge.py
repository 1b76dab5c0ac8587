"""The RQP edge's entry point for the kit."""

from __future__ import annotations

from functools import partial

from services.kit.edge import Edge, EdgeContext
from services.kit.net import shell_example
from services.rqp.cast.agent import CastAgent
from services.rqp.mca.receiver import Receiver
from services.rqp.mca.sender import McaSender
from services.rqp.mca.session import McaSession
from services.rqp.name_resolver import LookUp, look_up
from services.rqp.service import RqpService
from services.rqp.settings import RqpSettings


async def start(context: EdgeContext[RqpSettings], look_up: LookUp = look_up) -> RqpService:
    """Start the listeners and agents of both protocols. look_up: resolves host names."""
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
    return service


def example(settings: RqpSettings) -> list[str]:
    """Return bash commands that ask whether queue 7 is available; if it is, they print 40 00 00 00 70."""
    send = r'printf "\x30\0\0\0\x70"'
    return [shell_example(listener, send, "timeout 2 head -c5") for listener in settings.listeners.values()]


EDGE = Edge("rqp", RqpSettings, start, example)

"""Declare and start the TMQ edge."""

from __future__ import annotations

from functools import partial

from services.kit.edge import Edge, EdgeContext
from services.kit.net import shell_example
from services.kit.session import Session, Wire
from services.tmq.service import TmqService
from services.tmq.session import TmqSession
from services.tmq.settings import TmqListener, TmqSettings


class RunningTmq:
    """The TMQ edge, once started."""

    def __init__(self, service: TmqService) -> None:
        self.service = service
        self.readiness = service.readiness

    async def stop_taking(self) -> None:
        """Do nothing: messages are taken only for requests, which end with the sessions."""

    async def close(self) -> None:
        """Close the store and publish the last counts."""
        await self.service.close()


async def start(context: EdgeContext[TmqSettings]) -> RunningTmq:
    """Connect to the store, and set up the listeners."""
    settings = context.settings
    store = settings.store.store(
        context.store_url, context.name, settings.request_timeout_s, context.metrics.store_observer
    )
    service = TmqService(settings, store, context.metrics)
    store.start_serving(settings.create.domain)
    for name, listener in settings.listeners.items():
        context.listen(name, listener, partial(make_session, service, listener))
    service.tally.start()
    return RunningTmq(service)


def make_session(service: TmqService, listener: TmqListener, wire: Wire) -> Session:
    """Return the session of a new connection."""
    limits = service.settings.limits(listener)
    return TmqSession(wire, service, listener.dialect, listener.transaction_kind, limits)


def example(settings: TmqSettings) -> list[str]:
    """Return commands that CREATE a queue `hello` from bash. The reply is one octet: 00 created, 01 exists."""
    send = r'printf "\0\0\0\0\5hello"'
    return [shell_example(listener, send, "head -c1") for listener in settings.listeners.values()]


EDGE = Edge("tmq", TmqSettings, start, example)

"""The TMQ edge as the kit starts it."""

from __future__ import annotations

from functools import partial

from services.kit.edge import Edge, EdgeContext
from services.kit.session import Session, Wire
from services.tmq.service import TmqService
from services.tmq.session import TmqSession
from services.tmq.settings import TmqListener, TmqSettings


class RunningTmq:
    def __init__(self, service: TmqService) -> None:
        self.service = service
        self.readiness = service.readiness

    async def stop_taking(self) -> None:
        """Nothing is taken but what a client asks for: the drain of the sessions is enough."""

    async def close(self) -> None:
        await self.service.close()


async def start(context: EdgeContext[TmqSettings]) -> RunningTmq:
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
    limits = service.settings.limits(listener)
    return TmqSession(wire, service, listener.dialect, listener.transaction_kind, limits)


def example(settings: TmqSettings) -> list[str]:
    """CREATE a queue named `hello` with nothing but bash; the answer is one octet: 00 made, 01 there already."""
    request = r'printf "\0\0\0\0\5hello" >&3; head -c1 <&3 | od -An -tx1'
    return [
        f"bash -c 'exec 3<>/dev/tcp/{listener.host}/{listener.port}; {request}'"
        for listener in settings.listeners.values()
    ]


EDGE = Edge("tmq", TmqSettings, start, example)

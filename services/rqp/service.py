"""What both protocols share in a process: the store, the settings, the counters, and work beside the loop."""

from __future__ import annotations

import asyncio
from typing import Protocol

from services.kit.metrics import Metrics, Tally
from services.kit.readiness import Readiness
from services.rqp import measures
from services.rqp.names import LookUp, Names
from services.rqp.settings import RqpSettings
from services.store import Pipe, Queue, Store
from services.store.background_tasks import BackgroundTasks
from services.store.known_peers import KnownPeers
from services.store.pipeline import Domain
from services.store.redis import process_name


class Agent(Protocol):
    """One protocol's part of the edge: what receives, what sends, or both."""

    def start(self) -> None:
        """The edge begins; the store may be away."""

    async def stop_taking(self) -> None:
        """The drain has begun: nothing new is taken from the store, what is out may still be confirmed.

        Cancelled when the drain's time is over: what is under way then, `close` ends at once.
        """

    async def close(self) -> None:
        """Gives back what it holds."""


class RqpService:
    """Made and started once; `agents` work with it."""

    def __init__(self, settings: RqpSettings, store: Store, metrics: Metrics, look_up: LookUp) -> None:
        self.settings = settings
        self.store = store
        self.metrics = metrics
        self.name = process_name(metrics.edge)  # of this process, for whatever it holds in the store
        self.tally = Tally(metrics)
        self.background = BackgroundTasks(settings.request_timeout_s, metrics.local_errors.inc)
        self.readiness = Readiness(store=store.fault_of)
        self.names = Names(look_up, settings.lookup_s, metrics)
        self.registered = KnownPeers(store, metrics.local_errors.inc)
        self.agents: list[Agent] = []
        self.owned = metrics.gauge(measures.OWNED)
        self.stuck = metrics.gauge(measures.STUCK)
        self.sent = metrics.counter(measures.SENT)
        self.failures = metrics.counter(measures.FAILURES)
        self.repeated = metrics.counter(measures.UNCONFIRMED)
        self.lost = metrics.counter(measures.LOST)

    def pipe(self, queue: Queue) -> Pipe:
        return self.store.open_domain(queue.domain).pipe

    def domain(self, queue: Queue) -> Domain:
        return self.store.open_domain(queue.domain)

    def start(self) -> None:
        self.tally.start()
        self.registered.start()
        for agent in self.agents:
            agent.start()

    async def stop_taking(self) -> None:
        await asyncio.gather(*(agent.stop_taking() for agent in self.agents))

    async def close(self) -> None:
        await asyncio.gather(*(agent.close() for agent in self.agents))
        await self.background.close()
        await self.registered.close()
        await self.names.close()
        await self.store.close()
        await self.tally.close()

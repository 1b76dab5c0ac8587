"""Hold what both protocols share in a process: the store, settings, counters and background work."""

from __future__ import annotations

import asyncio
from typing import Protocol

from services.kit.metrics import Metrics, Tally
from services.kit.readiness import Readiness
from services.rqp import measures
from services.rqp.name_resolver import LookUp, NameResolver
from services.rqp.settings import RqpSettings
from services.store import Pipe, Queue, Store
from services.store.background_tasks import BackgroundTasks
from services.store.known_peers import KnownPeers
from services.store.pipeline import Domain
from services.store.redis import process_name


class Agent(Protocol):
    """A part of the edge that one protocol runs: what receives, what sends, or both."""

    def start(self) -> None:
        """Begin work; the store may still be unavailable."""

    async def stop_taking(self) -> None:
        """Drain: take nothing new from the store; messages in flight may still be confirmed.

        Cancelled when the drain's time is over; `close` then ends what is still running at once.
        """

    async def close(self) -> None:
        """End all work and give back what is held in the store."""


class RqpService:
    """The edge as the kit runs it; `agents` are added before `start`."""

    def __init__(self, settings: RqpSettings, store: Store, metrics: Metrics, look_up: LookUp) -> None:
        self.settings = settings
        self.store = store
        self.metrics = metrics
        self.name = process_name(metrics.edge)  # holder of everything this process holds in the store
        self.tally = Tally(metrics)
        self.background = BackgroundTasks(settings.request_timeout_s, metrics.local_errors.inc)
        self.readiness = Readiness(store=store.fault_of)
        self.resolver = NameResolver(look_up, settings.lookup_s, metrics)
        self.registered = KnownPeers(store, metrics.local_errors.inc)
        self.agents: list[Agent] = []
        self.owned = metrics.gauge(measures.OWNED)
        self.stuck = metrics.gauge(measures.STUCK)
        self.sent = metrics.counter(measures.SENT)
        self.failures = metrics.counter(measures.FAILURES)
        self.repeated = metrics.counter(measures.UNCONFIRMED)
        self.lost = metrics.counter(measures.LOST)

    def pipe(self, queue: Queue) -> Pipe:
        """Return the pipe to the queue's domain."""
        return self.store.open_domain(queue.domain).pipe

    def domain(self, queue: Queue) -> Domain:
        """Return the queue's domain."""
        return self.store.open_domain(queue.domain)

    def start(self) -> None:
        """Start all agents."""
        self.tally.start()
        self.registered.start()
        for agent in self.agents:
            agent.start()

    async def stop_taking(self) -> None:
        """Drain all agents."""
        await asyncio.gather(*(agent.stop_taking() for agent in self.agents))

    async def close(self) -> None:
        """Close all agents, then the connection to the store."""
        await asyncio.gather(*(agent.close() for agent in self.agents))
        await self.background.close()
        await self.registered.close()
        await self.resolver.close()
        await self.store.close()
        await self.tally.close()

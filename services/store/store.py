"""The store as a process uses it: domains, queues by name, and the news about both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from services.store.catalogue.audit import AuditLog
from services.store.catalogue.catalogue import Catalogue
from services.store.catalogue.domain_setup import DomainSetup
from services.store.catalogue.kept_promises import KeptPromises
from services.store.catalogue.listing import Listing
from services.store.catalogue.peers import Peers
from services.store.catalogue.registry import EVERYTHING, READY, Registry
from services.store.catalogue.ring_nodes import RingNodes
from services.store.model.alarms import ALARMS
from services.store.model.client import Client, ConnectedPeer
from services.store.model.errors import domain_lost
from services.store.model.queues import Queue
from services.store.pipeline.domain import Domain, Timing
from services.store.pipeline.domains import Domains
from services.store.pipeline.metering import Metered
from services.store.pipeline.pipe import PipeSettings
from services.store.processes.process_directory import ProcessDirectory
from services.store.processes.queue_notifications import Wakes
from services.store.processes.rpc_protocol import Respondent
from services.store.processes.rpc_server import Reception
from services.store.redis.connect import Connector
from services.store.redis.probe import Promises
from services.store.redis.tls_files import check_files
from services.store.tracing.delivery_spans import DeliverySpans
from services.store.tracing.spans import Traced
from services.store.tracing.trace_propagation import TracePropagation
from services.store.upkeep.caretaker import Caretaker
from services.store.upkeep.dead_spans import DeadSpans
from services.store.upkeep.following import MOST_BACK, Following
from services.store.upkeep.process_counters import Shell
from services.store.upkeep.sampler import Sampler

DEFAULT_DOMAIN = "main"


def _ignore(_reason: str, _number: int) -> None:
    return None


class Store:
    """The parts of a store, by what they know.

    `catalogue` finds, declares and deletes queues, `listing` tells of all of them, `peers` of other systems; `domains`
    carry messages; `processes` are the others that use it; `promises` says what it can keep.
    """

    def __init__(
        self,
        url: str,
        edge: str,
        *,
        pipe: PipeSettings | None = None,
        timing: Timing | None = None,
        observe: Callable[[str, int], None] = _ignore,
    ) -> None:
        """Raises ValueError for a URL that is none, or whose TLS files cannot be used. Nothing is connected yet.

        edge: who we are, in session ids and origins. observe(reason, number): told of every refusal and alarm, and at
        once of all alarms that none has been yet: who watches a counter sees its first step only if it was 0 before.
        If it is a `Shell`, too, it tells of the process's connections; if `Metered`, it may hear of each queue; if a
        `Respondent`, the process can be asked; a `Traced` one may have messages traced.
        """
        self._pipe_settings = pipe or PipeSettings()
        waits = (self._pipe_settings.request_timeout_s, self._pipe_settings.question_timeout_s)
        self.connector = Connector(url, min(waits))
        check_files(self.connector.url)
        self.edge = edge
        self._timing = timing or Timing()
        self._observe = observe
        for alarm in ALARMS:
            observe(alarm, 0)
        observer: object = observe
        self._recorder = observer.recorder if isinstance(observer, Traced) else None
        # for whoever forwards messages, or is sent some; None: this process is not traced
        self.trace_propagation = (
            TracePropagation(self._recorder, self._delivery_spans_of) if self._recorder is not None else None
        )
        self.registry = Registry(self.connector)
        self.domains = Domains(self._make_domain)
        if isinstance(observer, Metered) and (hear := observer.meter(self.domains.tell)) is not None:
            self.domains.meter(hear)
        self.promises = KeptPromises(self.connector, self.registry)
        self.peers = Peers(self.registry)
        self.audit = AuditLog(self.registry)
        self.ring_nodes = RingNodes(self.registry)
        self.setup = DomainSetup(self.registry, self.domains)
        self.catalogue = Catalogue(self.registry, self.domains, self.setup, self.promises, self.peers)
        self.listing = Listing(self.registry, self.domains)
        self.processes = ProcessDirectory(self.connector, self.registry)
        self._wakes: dict[str, Wakes] = {}
        self._caretaker: Caretaker | None = None
        self._dead_spans: DeadSpans | None = None
        self.sampler: Sampler | None = None
        self._reception: Reception | None = None

    def _make_domain(self, name: str) -> Domain:
        return Domain(
            name,
            self.connector,
            self.edge,
            self._pipe_settings,
            self._timing,
            self._observe,
            lambda _epoch: self.catalogue.forget_all(),
            self._recorder,
        )

    def _delivery_spans_of(self, queue: Queue) -> DeliverySpans:
        tracing = self.domains.get(queue.domain).tracing
        assert tracing is not None  # each domain of a process that is traced has one
        return tracing.delivery_spans

    # life

    async def initialise(self, *, accept_loss: bool = False) -> Promises:
        """Set the store up if it is new: functions, dataset, what it can promise. Needs an administrator's rights.

        Raises DatasetLost for a domain that was ready and is empty now, unless the loss is accepted: then its
        queues are declared again, empty.
        """
        promises = await self.promises.probe()
        await self.registry.initialise()
        await self.promises.write_down(promises)
        await self.registry.tell(EVERYTHING)
        ready = await self.registry.domains()
        for name in ready:
            domain = self.get_domain(name)
            if await domain.epoch() == "":
                if not accept_loss:
                    raise domain_lost(name)
                await self._restart(domain)
        if not ready:
            await self.setup.set_up(self.get_domain(DEFAULT_DOMAIN))
        return promises

    async def _restart(self, domain: Domain) -> None:
        """A domain that lost everything begins anew, with the queues that the registry knows."""
        await self.setup.set_up(domain)
        async for queue in self.listing.queues():
            if queue.domain == domain.name:
                await domain.declare(queue, "")

    def start_serving(self, domain: str = DEFAULT_DOMAIN) -> None:
        """This process serves queues of this domain, and is a caretaker: what edges are, and the CLI is not."""
        self._caretaker = Caretaker(self, self._timing.upkeep_s)
        self._caretaker.start(domain)
        self.domains.start_sweeping()
        self.open_domain(domain)
        if self._timing.samples_kept:
            self._sample(domain)
        if self._recorder is not None:
            self._dead_spans = DeadSpans(self.listing, self.domains, self._recorder, self._timing.upkeep_s)
            self._dead_spans.start()
        observer: object = self._observe
        if isinstance(observer, Respondent):
            self._reception = Reception(self.connector, self.registry, self.edge, observer)
            self._reception.start()

    def _sample(self, domain: str) -> None:
        shell = self._observe if isinstance(self._observe, Shell) else None
        self.sampler = Sampler(
            self.edge, self.domains, self._timing.sample_s, self._timing.samples_kept, shell
        )
        self.domains.keep_tallies()
        self.sampler.start(domain)

    async def close(self, timeout: float = 5.0) -> None:
        if self._caretaker is not None:
            await self._caretaker.close()
        if self._dead_spans is not None:
            await self._dead_spans.close()
        if self.sampler is not None:
            await self.sampler.stop()
        if self._reception is not None:
            await self._reception.close()
        await self.catalogue.close()
        await asyncio.gather(*(wakes.close() for wakes in self._wakes.values()))
        domains = self.domains.all()
        is_away = any(domain.pipe.trouble is not None for domain in domains)
        await asyncio.gather(*(domain.finish(timeout) for domain in domains))
        if self.sampler is not None and not is_away:
            await self.sampler.flush()
        if self._reception is not None and not is_away:
            await self._reception.presence.leave()
        await asyncio.gather(*(domain.close() for domain in domains))
        await self.registry.close()

    # what an edge asks for

    async def now_ms(self) -> int:
        """The store's clock, ms since 1970: all times that it tells are of this one."""
        return await self.registry.link.now_ms()

    def fault_of(self, domain: str = DEFAULT_DOMAIN) -> str | None:
        """Return why this domain cannot be used now, or None.

        Each domain has a fault of its own: in a Cluster it may be on a shard that is away. A domain that this process
        has only looked at, and has not started, has none.
        """
        found = self.domains.known(domain)
        return None if found is None or found.pipe.trouble is None else str(found.pipe.trouble)

    def client(self, peer: ConnectedPeer | None = None) -> Client:
        """Somebody who came to this edge; None: nobody can know who it was."""
        return Client(self.edge) if peer is None else Client.at(self.edge, peer)

    def get_domain(self, name: str) -> Domain:
        """See `Domains.get`."""
        return self.domains.get(name)

    def open_domain(self, name: str = DEFAULT_DOMAIN) -> Domain:
        """See `Domains.open`."""
        return self.domains.open(name)

    def following(self, domain: str, back_ms: int, most_back: int = MOST_BACK) -> Following:
        """The samples of a domain, as they come, and so far back (following.py)."""
        return Following(self.get_domain(domain).link, domain, back_ms, most_back)

    def wakes(self, name: str = DEFAULT_DOMAIN) -> Wakes:
        """Tells when queues of the domain may have something; one for the whole process."""
        found = self._wakes.get(name)
        if found is None:
            found = self._wakes[name] = Wakes(self.connector, name)
            found.start()
        return found


__all__ = ["DEFAULT_DOMAIN", "READY", "Store"]

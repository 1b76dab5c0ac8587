"""Combine the parts of a store into the object that a process uses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from services.store.catalogue.audit import AuditLog
from services.store.catalogue.catalogue import Catalogue
from services.store.catalogue.domain_setup import DomainSetup
from services.store.catalogue.durability_guarantees import KeptPromises
from services.store.catalogue.listing import Listing
from services.store.catalogue.peers import Peers
from services.store.catalogue.registry import EVERYTHING, Registry
from services.store.catalogue.ring_nodes import RingNodes
from services.store.model.ack_levels import Promises
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
from services.store.redis.tls_files import check_files
from services.store.tracing.delivery_spans import DeliverySpans
from services.store.tracing.spans import Traced
from services.store.tracing.trace_propagation import TracePropagation
from services.store.upkeep.caretaker import Caretaker
from services.store.upkeep.dead_spans import DeadSpans
from services.store.upkeep.process_counters import Shell
from services.store.upkeep.sample_reader import MOST_BACK, SampleReader
from services.store.upkeep.sampler import Sampler

DEFAULT_DOMAIN = "main"


def _ignore(_reason: str, _number: int) -> None:
    return None


class Store:
    """A store with its parts, for one process."""

    def __init__(
        self,
        url: str,
        edge: str,
        *,
        pipe: PipeSettings | None = None,
        timing: Timing | None = None,
        observe: Callable[[str, int], None] = _ignore,
    ) -> None:
        """Check the URL without connecting.

        Args:
            url: The server, as `redis://127.0.0.1:6379`; also `rediss`, `unix`, `redis+sentinel` and `redis+cluster`.
            edge: Names this process in session ids and origins.
            pipe: Time-outs of message operations.
            timing: Intervals of upkeep.
            observe: Called with a reason and a number for every refusal and alarm, and at once with 0 for each alarm,
                so that the first increase of its counter is visible. It may implement `Shell` (the process's
                connections), `Metered` (counts by queue), `Respondent` (answers requests of other processes) and
                `Traced` (traces messages).

        Raises:
            ValueError: For an invalid URL or unusable TLS files.
        """
        self._pipe_settings = pipe or PipeSettings()
        waits = (self._pipe_settings.request_timeout_s, self._pipe_settings.question_timeout_s)
        self.connector = Connector(url, min(waits))  # opens connections to the server
        check_files(self.connector.url)
        self.edge = edge  # the name of this program in session ids and origins
        self._timing = timing or Timing()
        self._observe = observe
        for alarm in ALARMS:
            observe(alarm, 0)
        observer: object = observe
        self._recorder = observer.recorder if isinstance(observer, Traced) else None
        # None if this process is not traced
        self.trace_propagation = (
            TracePropagation(self._recorder, self._delivery_spans_of) if self._recorder is not None else None
        )
        self.registry = Registry(self.connector)  # the catalogue's documents, as they are in Redis
        self.domains = Domains(self._make_domain)  # the transaction domains in use
        if isinstance(observer, Metered) and (report := observer.meter(self.domains.report)) is not None:
            self.domains.meter(report)
        self.promises = KeptPromises(self.connector, self.registry)  # the store's durability guarantees
        self.peers = Peers(self.registry)  # other systems
        self.audit = AuditLog(self.registry)  # the audit log
        self.ring_nodes = RingNodes(self.registry)  # the nodes of rings
        self.setup = DomainSetup(self.registry, self.domains)  # sets domains up; used by `initialise`
        # finds, declares and deletes queues
        self.catalogue = Catalogue(self.registry, self.domains, self.setup, self.promises, self.peers)
        self.listing = Listing(self.registry, self.domains)  # lists queues, and reads their statistics
        self.processes = ProcessDirectory(self.connector, self.registry)  # the processes that use the store
        self._wakes: dict[str, Wakes] = {}
        self._caretaker: Caretaker | None = None
        self._dead_spans: DeadSpans | None = None
        self.sampler: Sampler | None = None  # None before `start_serving`
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
        """Set up the store if it is new: functions, dataset, guarantees. Needs an administrator's rights.

        Args:
            accept_loss: Declare the queues of a domain again, empty, if the domain was ready and is empty now.

        Returns:
            What the store guarantees.

        Raises:
            DatasetLost: For such a domain, unless the loss is accepted.
            StoreUnavailable: If the store cannot be reached.
        """
        promises = await self.promises.probe()
        await self.registry.initialise()
        await self.promises.write_down(promises)
        await self.registry.publish_change(EVERYTHING)
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
        """Set up a domain again after a loss, with the queues of the registry."""
        await self.setup.set_up(domain)
        async for queue in self.listing.queues():
            if queue.domain == domain.name:
                await domain.declare(queue, "")

    def start_serving(self, domain: str = DEFAULT_DOMAIN) -> None:
        """Open sessions in this domain and take part in the store's upkeep, as edges do and the CLI does not."""
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
        """Finish requests in progress, for at most `timeout` seconds, and close all connections."""
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

    # for edges

    async def now_ms(self) -> int:
        """Return the store's time, ms since 1970; all times in the store are by this clock."""
        return await self.registry.link.now_ms()

    def fault_of(self, domain: str = DEFAULT_DOMAIN) -> str | None:
        """Return why a domain is unusable now, or None, also for a domain without a session.

        Each domain has its own state, as its shard in a Cluster may be unreachable.
        """
        found = self.domains.known(domain)
        return None if found is None or found.pipe.trouble is None else str(found.pipe.trouble)

    def client(self, peer: ConnectedPeer | None = None) -> Client:
        """Return the client connected as `peer`; None: a client without known address and names."""
        return Client(self.edge) if peer is None else Client.at(self.edge, peer)

    def get_domain(self, name: str) -> Domain:
        """Return a domain without opening a session, for reads and dead letters."""
        return self.domains.get(name)

    def open_domain(self, name: str = DEFAULT_DOMAIN) -> Domain:
        """Return a domain, and open its session if necessary."""
        return self.domains.open(name)

    def following(self, domain: str, back_ms: int, most_back: int = MOST_BACK) -> SampleReader:
        """Return a reader for new samples of a domain, and for earlier ones."""
        return SampleReader(self.get_domain(domain).link, domain, back_ms, most_back)

    def wakes(self, name: str = DEFAULT_DOMAIN) -> Wakes:
        """Return the process's notifications of queues of a domain that may have messages."""
        found = self._wakes.get(name)
        if found is None:
            found = self._wakes[name] = Wakes(self.connector, name)
            found.start()
        return found

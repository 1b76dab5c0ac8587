"""The store as a process uses it: domains, queues by name, and the news about both."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from redis.exceptions import RedisError

from services.store.catalogue.catalogue import Catalogue
from services.store.catalogue.registry import EVERYTHING, READY, Registry, begin_dataset
from services.store.model.alarms import ALARMS
from services.store.model.client import Client, Known
from services.store.model.errors import (
    DatasetLost,
    NotInitialised,
    domain_lost,
)
from services.store.model.queues import Queue
from services.store.pipeline.domain import Domain, Timing
from services.store.pipeline.metering import Metered
from services.store.pipeline.pipe import PipeSettings
from services.store.processes.process_directory import Company
from services.store.processes.queue_notifications import Wakes
from services.store.processes.rpc_protocol import Respondent
from services.store.processes.rpc_server import Reception
from services.store.redis.connect import Connector
from services.store.redis.link import explain
from services.store.redis.probe import Promises, connected_replicas, probe
from services.store.redis.tls_files import check_files
from services.store.tracing.delivery_spans import HandedOut
from services.store.tracing.spans import Traced
from services.store.tracing.trace_propagation import Hops
from services.store.upkeep.caretaker import Caretaker
from services.store.upkeep.dead_spans import DeadSpans
from services.store.upkeep.following import MOST_BACK, Following
from services.store.upkeep.process_counters import Shell
from services.store.upkeep.sampler import Sampler

log = logging.getLogger(__name__)

DEFAULT_DOMAIN = "main"
PROMISES_S = 1.0  # whoever opens a queue goes by promises that are no older


def _ignore(_reason: str, _number: int) -> None:
    return None


class Store(Catalogue, Company):
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
        super().__init__(Registry(self.connector))
        self.edge = edge
        self._timing = timing or Timing()
        self._observe = observe
        for alarm in ALARMS:
            observe(alarm, 0)
        observer: object = observe
        self._hear = observer.meter(self._tell_all) if isinstance(observer, Metered) else None
        self._recorder = observer.recorder if isinstance(observer, Traced) else None
        # for whoever forwards messages, or is sent some; None: this process is not traced
        self.hops = Hops(self._recorder, self._handed_out_of) if self._recorder is not None else None
        self._domains: dict[str, Domain] = {}
        self._wakes: dict[str, Wakes] = {}
        self._caretaker: Caretaker | None = None
        self._dead_spans: DeadSpans | None = None
        self.sampler: Sampler | None = None
        self._reception: Reception | None = None
        self._promises: Promises | None = None  # as they were found at
        self._promises_at = 0.0

    # life

    async def initialise(self, *, accept_loss: bool = False) -> Promises:
        """Sets the store up if it is new: functions, dataset, what it can promise. Needs an administrator's rights.

        Raises DatasetLost for a domain that was ready and is empty now, unless the loss is accepted: then its
        queues are declared again, empty.
        """
        promises = await self._probe()
        await self.registry.initialise()
        await self._write_down(promises)
        await self.registry.tell(EVERYTHING)
        ready = await self.registry.domains()
        for name in ready:
            if await self._domain(name).epoch() == "":
                if not accept_loss:
                    raise domain_lost(name)
                await self._restart(self._domain(name))
        if not ready:
            await self._set_up(self._domain(DEFAULT_DOMAIN))
        return promises

    async def raise_promises(self) -> bool:
        """Write down ack levels that the store keeps by now and did not when it was set up; return if there are any.

        No level is taken back, as a replica may be away for a moment. Needs an administrator's rights.
        """
        believed, found = await self._written_down(), await self._probe()
        has_more = set(believed.levels()) < set(found.levels())
        if has_more:
            await self._write_down(found)
        return has_more

    async def _probe(self) -> Promises:
        try:
            return await probe(self.connector)
        except (RedisError, OSError, TimeoutError) as error:
            raise explain(error) from error

    async def _written_down(self) -> Promises:
        found = await self.registry.link.call("GET", self.registry.keys.promises)
        if found is None:
            raise NotInitialised
        return Promises(**json.loads(found))

    async def _write_down(self, promises: Promises) -> None:
        """Keep what was found. Replicas that were there once are counted on: they may be away for a moment."""
        if promises.fails_over:
            with suppress(NotInitialised):
                before = (await self._written_down()).replicas
                promises = replace(promises, replicas=max(before, promises.replicas))
        await self.registry.link.call("SET", self.registry.keys.promises, json.dumps(promises.to_json()))
        self.look_again()

    async def _restart(self, domain: Domain) -> None:
        """A domain that lost everything begins anew, with the queues that the registry knows."""
        await self._set_up(domain)
        async for queue in self.queues():
            if queue.domain == domain.name:
                await domain.declare(queue, "")

    async def promises(self) -> Promises:
        """What the store was found to be able to promise, with the replicas that it has now, as they come and go.

        Raises NotInitialised before the store was set up.
        """
        promises = await self._written_down()
        if not promises.fails_over:
            return promises
        info = await self.registry.link.call("INFO", "replication")
        live = connected_replicas(info.decode())
        return replace(promises, replicas=live, usual_replicas=promises.replicas)

    def look_again(self) -> None:
        """What the store can promise may have changed."""
        self._promises = None

    async def _lately_found(self) -> Promises:
        now = time.monotonic()
        if self._promises is None or now - self._promises_at > PROMISES_S:
            self._promises, self._promises_at = await self.promises(), now
        return self._promises

    async def now_ms(self) -> int:
        """The store's clock, ms since 1970: all times that it tells are of this one."""
        return await self.registry.link.now_ms()

    def look_after(self, domain: str = DEFAULT_DOMAIN) -> None:
        """This process serves queues of this domain, and is a caretaker: what edges are, and the CLI is not."""
        self._caretaker = Caretaker(self, self._timing.upkeep_s)
        self._caretaker.start(domain)
        for found in self._domains.values():
            found.look_after()
        self.domain(domain)
        if self._timing.samples_kept:
            self._sample(domain)
        if self._recorder is not None:
            self._dead_spans = DeadSpans(self, self._recorder, self._timing.upkeep_s)
            self._dead_spans.start()
        observer: object = self._observe
        if isinstance(observer, Respondent):
            self._reception = Reception(self.connector, self.registry, self.edge, observer)
            self._reception.start()

    def _sample(self, domain: str) -> None:
        shell = self._observe if isinstance(self._observe, Shell) else None
        self.sampler = Sampler(self, self._timing.sample_s, self._timing.samples_kept, shell)
        for found in self._domains.values():
            found.tallies.keep()
        self.sampler.start(domain)

    def _tell_all(self) -> None:
        for domain in self._domains.values():
            domain.tallies.tell()

    def _handed_out_of(self, queue: Queue) -> HandedOut:
        tracing = self._domain(queue.domain).tracing
        assert tracing is not None  # each domain of a process that is traced has one
        return tracing.handed_out

    def open_domains(self) -> list[Domain]:
        """Those that anybody here has used."""
        return [*self._domains.values()]

    async def close(self, timeout: float = 5.0) -> None:
        if self._caretaker is not None:
            await self._caretaker.close()
        if self._dead_spans is not None:
            await self._dead_spans.close()
        if self.sampler is not None:
            await self.sampler.stop()
        if self._reception is not None:
            await self._reception.close()
        await self.stop_looking()
        await asyncio.gather(*(wakes.close() for wakes in self._wakes.values()))
        is_away = any(domain.pipe.trouble is not None for domain in self._domains.values())
        await asyncio.gather(*(domain.finish(timeout) for domain in self._domains.values()))
        if self.sampler is not None and not is_away:
            await self.sampler.flush()
        if self._reception is not None and not is_away:
            await self._reception.presence.leave()
        await asyncio.gather(*(domain.close() for domain in self._domains.values()))
        await self.registry.close()

    def fault_of(self, domain: str = DEFAULT_DOMAIN) -> str | None:
        """Return why this domain cannot be used now, or None.

        Each domain has a fault of its own: in a Cluster it may be on a shard that is away. A domain that this process
        has only looked at, and has not started, has none.
        """
        found = self._domains.get(domain)
        return None if found is None or found.pipe.trouble is None else str(found.pipe.trouble)

    def client(self, peer: Known | None = None) -> Client:
        """Somebody who came to this edge; None: nobody can know who it was."""
        return Client(self.edge) if peer is None else Client.at(self.edge, peer)

    # domains

    def _domain(self, name: str) -> Domain:
        found = self._domains.get(name)
        if found is None:
            found = self._domains[name] = Domain(
                name,
                self.connector,
                self.edge,
                self._pipe_settings,
                self._timing,
                self._observe,
                self._dataset_changed,
                self._recorder,
            )
            if self._caretaker is not None:
                found.look_after()
            if self.sampler is not None:
                found.tallies.keep()
            if self._hear is not None:
                found.tallies.meter(self._hear)
        return found

    def look_at(self, name: str) -> Domain:
        """The domain without a session: enough to look, and for dead letters."""
        return self._domain(name)

    def domain(self, name: str = DEFAULT_DOMAIN) -> Domain:
        """The domain, its session being opened."""
        found = self._domain(name)
        found.start()
        return found

    def following(self, domain: str, back_ms: int, most_back: int = MOST_BACK) -> Following:
        """The samples of a domain, as they come, and so far back (following.py)."""
        return Following(self._domain(domain).link, domain, back_ms, most_back)

    def wakes(self, name: str = DEFAULT_DOMAIN) -> Wakes:
        """Tells when queues of the domain may have something; one for the whole process."""
        found = self._wakes.get(name)
        if found is None:
            found = self._wakes[name] = Wakes(self.connector, name)
            found.start()
        return found

    def _dataset_changed(self, _epoch: str) -> None:
        self.forget_all()

    async def prepare(self, name: str) -> None:
        """Sets a domain up that nobody has used yet. Raises NotInitialised, DatasetLost, StoreUnavailable."""
        if await self.registry.claim_domain(name):
            await self._set_up(self._domain(name))

    async def _set_up(self, domain: Domain) -> None:
        """A new domain takes the registry's dataset; one that was ready and is empty now has lost its data."""
        epoch = await self.registry.epoch()
        if await domain.epoch() == "":
            found = await begin_dataset(domain.link, domain.keys.epoch, epoch)
            if found.partition(".")[0] != epoch.partition(".")[0]:
                raise DatasetLost
        await self.registry.domain_is_ready(domain.name)


__all__ = ["DEFAULT_DOMAIN", "READY", "Store"]

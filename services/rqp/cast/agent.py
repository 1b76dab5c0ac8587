"""RQP/cast as a part of the edge: both agents of a process (rqp_cast.md 4, 5)."""

from __future__ import annotations

import asyncio
import contextlib

from services.rqp.cast.counts import Counts
from services.rqp.cast.machines.machines import PROTOCOL, Machines
from services.rqp.cast.ports.ports import Ports
from services.rqp.cast.receiving.questions import Questions
from services.rqp.cast.sending.attempt import SendingContext
from services.rqp.cast.sending.findreceiver import FindReceiver
from services.rqp.cast.sending.prefetch_buffer import Ids
from services.rqp.cast.sending.question_sender import QuestionSender
from services.rqp.cast.sending.sending_agent import CastSendingAgent, Shared
from services.rqp.cast.settings import CastSettings
from services.rqp.condition import Condition
from services.rqp.jobs import start_job, stop_job
from services.rqp.outbox import Outbox
from services.rqp.service import RqpService
from services.store import Queue, StoreError


class CastAgent:
    """An `Agent` of the edge. Raises SettingsError if the port for questions cannot be had."""

    def __init__(self, service: RqpService) -> None:
        settings: CastSettings = service.settings.cast
        counts = Counts(service.metrics)
        self.machines = Machines(settings, service)
        self.questions: Questions | None = None
        self.sending: CastSender | None = None
        if settings.receives:
            shared = service.settings.workers > 1
            self.questions = Questions(service, settings, self.machines, counts, shared=shared)
        if settings.sends:
            self.sending = CastSender(service, settings, self.machines, counts)

    def start(self) -> None:
        self.machines.start()
        if self.questions is not None:
            self.questions.start()
        if self.sending is not None:
            self.sending.start()

    async def stop_taking(self) -> None:
        """Sessions that have begun end by their own times, and so do attempts of which octets have left.

        Cancelled: attempts end, and `close` ends the sessions.
        """
        ends = []
        if self.questions is not None:
            self.questions.stop()
            ends.append(self.questions.ended())
        if self.sending is not None:
            ends.append(self.sending.stop())
        await asyncio.gather(*ends)

    async def close(self) -> None:
        if self.questions is not None:
            await self.questions.close()
        if self.sending is not None:
            await self.sending.close()
        await self.machines.close()


class CastSender:
    """The sending agents of all queues that this process owns. It owns none before it has findreceiver_port."""

    def __init__(
        self, service: RqpService, settings: CastSettings, machines: Machines, counts: Counts
    ) -> None:
        self._metrics = service.metrics
        self._service = service
        self.findreceiver = FindReceiver(settings, machines, counts, service.metrics)
        self._asker = QuestionSender(settings, machines)
        self.ports = Ports(settings.host, settings.sender_range, settings.port_rest_s)
        means = SendingContext(settings, machines, counts, self._asker, self.findreceiver, self.ports)
        self._shared = Shared(service, means, Ids(service.store))
        self._outbox = Outbox(service, PROTOCOL, self._make)
        self._starting: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.findreceiver.start()
        self._starting = start_job(self._start, "rqp cast sending", self._metrics)

    async def stop(self) -> None:
        await stop_job(self._starting)
        await self._outbox.close()

    async def close(self) -> None:
        await self.stop()
        await self.findreceiver.close()
        await self._asker.close()
        self.ports.close()

    async def _start(self) -> None:
        await self._wait_for_port()
        self._outbox.start()

    async def _wait_for_port(self) -> None:
        """Another process of ours may have it, and send all there is; if nobody sends, somebody has to look at that."""
        unsent = ""
        while not await self._is_open_within(self._service.settings.outbox.renew_s):
            before, unsent = unsent, await self._unsent()
            if unsent and unsent == before:
                self.findreceiver.warn(unsent)

    async def _is_open_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.findreceiver.is_open.wait()
        return self.findreceiver.is_open.is_set()

    async def _unsent(self) -> str:
        """The name of a transmission queue that no edge owns, or ''. One of them is looked at: all are alike."""
        store = self._service.store
        with contextlib.suppress(StoreError):  # the edge tells of that
            for name in sorted(await store.registry.remotes()):
                queue = await store.catalogue.find(name)
                remote = queue.spec.remote
                if remote is not None and remote.protocol == PROTOCOL and not queue.spec.paused:
                    return "" if (await store.listing.stats(queue))["owned_by"] else name
        return ""

    def _make(self, queue: Queue, condition: Condition) -> CastSendingAgent:
        return CastSendingAgent(self._shared, queue, condition)

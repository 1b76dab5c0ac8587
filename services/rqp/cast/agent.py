"""Run both RQP/cast agents of a process (rqp_cast.md 4, 5)."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

from services.rqp.cast.counts import Counts
from services.rqp.cast.machines.machines import PROTOCOL, Machines
from services.rqp.cast.ports.ports import Ports
from services.rqp.cast.receiving.questions import Questions
from services.rqp.cast.sending.attempt import SendingContext
from services.rqp.cast.sending.findreceiver import FindReceiver
from services.rqp.cast.sending.prefetch_buffer import Ids
from services.rqp.cast.sending.question_sender import QuestionSender
from services.rqp.cast.sending.sending_agent import CastSendingAgent
from services.rqp.jobs import start_job, stop_job
from services.rqp.outbox import Outbox
from services.rqp.service import RqpService
from services.store import StoreError


class CastAgent:
    """The edge's `Agent` for RQP/cast. Raises SettingsError if the port for questions is not available."""

    def __init__(self, service: RqpService) -> None:
        settings = service.settings.cast
        counts = Counts(service.metrics)
        self.machines = Machines(service)
        self.questions = Questions(service, self.machines, counts) if settings.receives else None
        self.sending = CastSender(service, self.machines, counts) if settings.sends else None

    def start(self) -> None:
        """Start resolving names, receiving and sending."""
        self.machines.start()
        if self.questions is not None:
            self.questions.start()
        if self.sending is not None:
            self.sending.start()

    async def stop_taking(self) -> None:
        """Wait for sessions that have begun and attempts that have sent octets; their own timeouts bound them.

        If cancelled, attempts end at once, and `close` ends the sessions.
        """
        ends = []
        if self.questions is not None:
            self.questions.stop()
            ends.append(self.questions.ended())
        if self.sending is not None:
            ends.append(self.sending.stop())
        await asyncio.gather(*ends)

    async def close(self) -> None:
        """End all sessions and attempts."""
        if self.questions is not None:
            await self.questions.close()
        if self.sending is not None:
            await self.sending.close()
        await self.machines.close()


class CastSender:
    """The sending agents of all queues that this process owns; it owns none before it has findreceiver_port."""

    def __init__(self, service: RqpService, machines: Machines, counts: Counts) -> None:
        settings = service.settings.cast
        self._service = service
        self._findreceiver = FindReceiver(service, machines, counts)
        self._questions = QuestionSender(settings, machines)
        self.ports = Ports(settings.host, settings.sender_range, settings.port_rest_s)
        context = SendingContext(
            service,
            settings,
            machines,
            counts,
            self._questions,
            self._findreceiver,
            self.ports,
            Ids(service.store),
        )
        self._outbox = Outbox(service, PROTOCOL, partial(CastSendingAgent, context))
        self._starting: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Wait for findreceiver_port, then take over queues."""
        self._findreceiver.start()
        self._starting = start_job(self._start, "rqp cast sending", self._service.metrics)

    async def stop(self) -> None:
        """Give up all queues once attempts that have sent octets are over."""
        await stop_job(self._starting)
        await self._outbox.close()

    async def close(self) -> None:
        """Give up all queues and close the ports."""
        await self.stop()
        await self._findreceiver.close()
        await self._questions.close()
        self.ports.close()

    async def _start(self) -> None:
        await self._wait_for_port()
        self._outbox.start()

    async def _wait_for_port(self) -> None:
        """Wait for findreceiver_port. Another edge may have it, and send; warn if none does."""
        unsent = ""
        while not await self._is_open_within(self._service.settings.outbox.renew_s):
            before, unsent = unsent, await self._unsent()
            if unsent and unsent == before:
                self._findreceiver.warn(unsent)

    async def _is_open_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._findreceiver.is_open.wait()
        return self._findreceiver.is_open.is_set()

    async def _unsent(self) -> str:
        """Return the name of a transmission queue if no edge owns it, else ''. One queue stands for all."""
        store = self._service.store
        with contextlib.suppress(StoreError):  # the edge's readiness reports it
            for name in sorted(await store.registry.remotes()):
                queue = await store.catalogue.find(name)
                remote = queue.spec.remote
                if remote is not None and remote.protocol == PROTOCOL and not queue.spec.paused:
                    return "" if (await store.listing.stats(queue))["owned_by"] else name
        return ""

"""Run the sending agents of all RQP/MCA transmission queues that this process owns (rqp_mca.md 3)."""

from __future__ import annotations

from functools import partial

from services.kit.net import Dialler
from services.rqp.mca.directory import Directory
from services.rqp.mca.receiver import PROTOCOL
from services.rqp.mca.sending_agent import McaSendingAgent
from services.rqp.outbox import Outbox
from services.rqp.service import RqpService


class McaSender:
    """The edge's `Agent` for sending over RQP/MCA."""

    def __init__(self, service: RqpService, dialler: Dialler) -> None:
        self.dialler = dialler
        self.directory = Directory(service)
        make = partial(McaSendingAgent, service, self.directory, dialler)
        self._outbox = Outbox(service, PROTOCOL, make)

    def start(self) -> None:
        """Follow the peers and take over queues."""
        self.directory.start()
        self._outbox.start()

    async def stop_taking(self) -> None:
        """Give up all queues once messages in flight are confirmed."""
        await self._outbox.close()

    async def close(self) -> None:
        """Give up all queues and stop following the peers."""
        await self._outbox.close()
        await self.directory.close()

"""What all transmission queues of RQP/MCA in a process share (rqp_mca.md 3)."""

from __future__ import annotations

from services.kit.net import Dialler
from services.rqp.condition import Condition
from services.rqp.mca.directory import Directory
from services.rqp.mca.receiver import PROTOCOL
from services.rqp.mca.sending_agent import McaSendingAgent
from services.rqp.outbox import Outbox
from services.rqp.service import RqpService
from services.store import Queue


class McaSender:
    """The sending side as the service runs it."""

    def __init__(self, service: RqpService, dialler: Dialler) -> None:
        self.service = service
        self.dialler = dialler
        self.settings = service.settings.mca
        self.directory = Directory(service, self.settings)
        self._outbox = Outbox(service, PROTOCOL, self._carrier)

    def start(self) -> None:
        self.directory.start()
        self._outbox.start()

    async def stop_taking(self) -> None:
        await self._outbox.close()

    async def close(self) -> None:
        await self._outbox.close()
        await self.directory.close()

    def _carrier(self, queue: Queue, condition: Condition) -> McaSendingAgent:
        service = self.service
        return McaSendingAgent(service, self.settings, self.directory, self.dialler, queue, condition)

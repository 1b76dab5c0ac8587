"""Run one session of the receiving agent (rqp_cast.md 3, 5).

The protocol's state machine decides; this module has the sockets and the waits. The kernel listens on data_port from
the beginning, as S may connect as soon as it has sent its approval; the connection is accepted after the approval.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar, assert_never

from protos.rqp_cast import (
    AcceptSenderMsg,
    BuryReceived,
    Confirm,
    EndTransmissionMsg,
    Free,
    Insert,
    Insertion,
    ReceiverAction,
    ReceiverSession,
    accept_receiver_reader,
    encode_accept_sender,
    encode_end_transmission,
)
from protos.types import PeerError
from services.rqp.cast.counts import Counts
from services.rqp.cast.ports import connections
from services.rqp.cast.ports.ports import Port
from services.rqp.cast.ports.wrong_protocol import DiagnosingReader
from services.rqp.cast.receiving.insertion import Inserter, Reservation
from services.rqp.cast.settings import CastSettings, PeerOptions

log = logging.getLogger(__name__)

T = TypeVar("T")

UNREAD = ("message_too_large", "timed_out")  # damage found before all octets have been read
READ_OUT_BYTES = 16 << 20  # how much of the rest is read: the largest message of Penstock


class SessionEnded(Exception):
    """The state machine has ended the session, with these actions."""

    def __init__(self, actions: list[ReceiverAction]) -> None:
        super().__init__()
        self.actions = actions


class Session:
    """The reception of one message. `run` returns when it is over; cancelled, it frees what it holds."""

    def __init__(
        self,
        settings: CastSettings,
        options: PeerOptions,
        inserter: Inserter,
        counts: Counts,
        reserved: Reservation,
        ports: tuple[Port, Port],
        key: int,
    ) -> None:
        self.key = key
        self.source = source = reserved.source
        self._settings = settings
        self._options = options
        self._inserter = inserter
        self._counts = counts
        self._reserved = reserved
        self._accept_port, self._data_port = self._ports = ports
        self._now = asyncio.get_running_loop().time
        self._machine = ReceiverSession(key, source, settings.receiver(options), self._now())
        self._agent = source
        self._is_announced = False  # the ports: an ACCEPT_SENDER_MSG may have arrived
        self._open: socket.socket | None = None
        self._is_free = False
        self._is_unread = False  # more of the message may come
        self._end = "stopped"
        self.on_free: Callable[[], None] = lambda: None  # called once, when the queue is free again

    @property
    def buffered(self) -> int:
        """Octets held of an unfinished message."""
        return self._machine.buffered

    async def run(self) -> None:
        """Receive the message, insert it and confirm it."""
        try:
            await self._do(await self._converse())
            if self._is_unread and self._open is not None:
                await self._read_out(self._open)
        finally:
            if self._open is not None:
                self._open.close()
            await self._free(rests=True)
            self._counts.excess.inc(self._machine.excess)
            self._counts.session(self._end)

    # the conversation

    async def _converse(self) -> list[ReceiverAction]:
        """Receive the message. Return the actions that follow."""
        try:
            await self._step(self._offer())
            await self._step(self._be_chosen())
            self._open = await self._step(connections.accepted(self._data_port, self.source, self._stranger))
            received = connections.received_first
            while True:
                data, received = await self._step(received(self._open)), connections.received
                if not data:
                    raise SessionEnded(self._lost("data_lost"))
                if actions := self._machine.receive(data, self._now()):
                    return actions
        except SessionEnded as over:
            return over.actions

    async def _step(self, work: Awaitable[T]) -> T:
        """Await one step. Raises SessionEnded on timeout, a broken connection or malformed input."""
        deadline = self._machine.deadline()
        try:
            async with asyncio.timeout_at(deadline) as waiting:
                return await work
        except TimeoutError as error:  # of the session, or the kernel's own
            if not waiting.expired() or deadline is None:
                raise SessionEnded(self._lost("connection_lost")) from error
            self._end = f"timed_out_{self._machine.state.value}"
            raise SessionEnded(self._machine.on_time(max(self._now(), deadline))) from error
        except PeerError as error:
            self._counts.fault(error.reason, self.source, error.detail)
            raise SessionEnded(self._lost("fault")) from error
        except OSError as error:
            raise SessionEnded(self._lost("connection_lost")) from error

    def _lost(self, end: str) -> list[ReceiverAction]:
        self._end = end
        return self._machine.lost(self._now())

    async def _offer(self) -> None:
        """Send ACCEPT_SENDER_MSG (3.2)."""
        settings = self._settings

        def message(local: str) -> bytes:
            self._is_announced = True
            ports = (self._accept_port.number, self.key, self._data_port.number)
            return encode_accept_sender(AcceptSenderMsg(self._address(local), *ports))

        port, timeout_s = settings.findreceiver_port, settings.connect_timeout_s
        await connections.send_message(settings.host, self.source, port, timeout_s, message)

    async def _be_chosen(self) -> None:
        """Wait for ACCEPT_RECEIVER_MSG (3.3)."""
        with await connections.accepted(self._accept_port, self.source, self._stranger) as sock:
            reader = DiagnosingReader(accept_receiver_reader(self._options.omit_address))
            try:
                message = await connections.message_of(sock, reader)
            except connections.EmptyConnection:  # another one was chosen
                raise SessionEnded(self._lost("declined")) from None
            self._counts.excess.inc(reader.excess)
        if late := self._machine.approved(message, self._now()):
            raise SessionEnded(late)

    # the machine's actions

    async def _do(self, actions: list[ReceiverAction]) -> None:
        """Carry out actions in order, and after them those that the insertion leads to."""
        for action in actions:
            match action:
                case Insert():
                    self._agent = action.agent
                    outcome = await self._inserter.insert(self._reserved, self.key, action)
                    self._end = outcome.value
                    self._log(outcome)
                    await self._do(self._machine.inserted(outcome))
                case BuryReceived():
                    self._end = action.detail
                    self._is_unread = action.detail in UNREAD
                    await self._inserter.bury(self._reserved.queue, self._agent, action)
                case Free():
                    await self._free(action.ports_rest)
                case Confirm():
                    await self._confirm(action)
                case _:
                    assert_never(action)

    async def _free(self, rests: bool) -> None:
        """Free the queue and the ports. Ports that were not announced need no rest: nothing can be sent to them."""
        if self._is_free:
            return
        self._is_free = True
        if self._open is not None and not self._is_unread:
            self._open.close()
        for port in self._ports:
            port.close(rests and self._is_announced)
        await self._reserved.free()
        self.on_free()

    async def _confirm(self, confirm: Confirm) -> None:
        """Send END_TRANSMISSION_MSG, once (3.5)."""
        settings = self._settings

        def message(local: str) -> bytes:
            return encode_end_transmission(
                EndTransmissionMsg(self._address(local), confirm.id, confirm.result)
            )

        port, timeout_s = confirm.endtransmission_port, settings.connect_timeout_s
        try:
            async with asyncio.timeout(settings.connect_timeout_s):
                await connections.send_message(settings.host, self.source, port, timeout_s, message)
        except OSError as error:
            self._counts.unconfirmed.inc()
            fields = {"action": "cast_unconfirmed", "peer": self.source, "id": confirm.id}
            log.info("confirmation not sent, the sender may resend the message: %s", error, extra=fields)

    async def _read_out(self, sock: socket.socket) -> None:
        """Discard the rest of the message until S has received FAILURE and closes.

        Closing a connection with unread octets resets it; S, which still writes, would see only that.
        """
        before = self._machine.excess
        with contextlib.suppress(OSError):
            async with asyncio.timeout(self._settings.connect_timeout_s):
                while self._machine.excess - before < READ_OUT_BYTES:
                    if not (data := await connections.received(sock)):
                        return
                    self._machine.receive(data, self._now())

    def _address(self, local: str) -> str | None:
        """Return the field `address` (2.2)."""
        return None if self._options.omit_address else self._settings.address or local

    def _stranger(self) -> None:
        self._counts.unheard("foreign_peer")

    def _log(self, outcome: Insertion) -> None:
        if outcome is not Insertion.STORED:
            fields = {"action": "cast_not_inserted", "reason": outcome.value, "peer": self.source}
            log.info("message not inserted", extra={**fields, "queue": self._reserved.queue.name})

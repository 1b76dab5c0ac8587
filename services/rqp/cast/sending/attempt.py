"""Carry out one attempt to send one message, as its state machine decides (rqp_cast.md 3, 4)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from protos.rqp_cast import (
    ZERO_ID,
    AcceptReceiverMsg,
    Approve,
    Ask,
    Bury,
    CloseAll,
    DataMsg,
    Hold,
    Keep,
    Kept,
    MoveToEnd,
    Offer,
    Outgoing,
    PutBack,
    Refuse,
    Remove,
    SendData,
    Sender,
    SenderAction,
    SenderState,
    Unheard,
    encode_accept_receiver,
    encode_data,
)
from services.rqp.cast.counts import Counts
from services.rqp.cast.machines.machines import Machines
from services.rqp.cast.ports import connections
from services.rqp.cast.ports.ports import ANY_PEER, PeerKey, Port, Ports
from services.rqp.cast.sending.confirmations import Confirmations
from services.rqp.cast.sending.findreceiver import FindReceiver
from services.rqp.cast.sending.key_locks import KeyLocks
from services.rqp.cast.sending.prefetch_buffer import Ids
from services.rqp.cast.sending.question_sender import AskedAddresses, QuestionSender
from services.rqp.cast.settings import CastSettings
from services.rqp.service import RqpService
from services.store.model import now

Outcome = Remove | PutBack | MoveToEnd | Bury | Hold
PORTS_AGAIN_S = 1.0
# octets of the message have been sent
_IN_FLIGHT = (SenderState.SENDING, SenderState.WAIT_FOR_CONFIRMATION, SenderState.BROKEN_OFF)


@dataclass(frozen=True, slots=True)
class SendingContext:
    """The context that all sending agents of a process share."""

    service: RqpService
    settings: CastSettings
    machines: Machines
    counts: Counts
    questions: QuestionSender
    findreceiver: FindReceiver
    ports: Ports  # endtransmission_ports
    ids: Ids
    locks: KeyLocks = field(default_factory=KeyLocks)


@dataclass(frozen=True, slots=True)
class Transmission:
    """A message to be sent."""

    outgoing: Outgoing
    key: int
    address: str  # of the agent that gave the id
    record: bytes  # u32 message_size, data
    peers: tuple[str, ...]  # groups of possible receivers; (): all machines


class Attempt:
    """One attempt: `run` it once. Cancelled, it leaves nothing open."""

    def __init__(
        self,
        context: SendingContext,
        machine: Sender,
        message: Transmission,
        keep: Callable[[Kept], Awaitable[bool]],
        on_wait: Callable[[], None],
    ) -> None:
        """keep: stores the state durably and returns whether it could. on_wait: called while no port is free."""
        self._context = context
        self._settings = context.settings
        self._machine = machine
        self._message = message
        self._keep = keep
        self._on_wait = on_wait
        self.receiver = ""  # the address whose answer was accepted; "" before that
        self._inbox: asyncio.Queue[list[SenderAction]] = asyncio.Queue()
        self._asked: AskedAddresses = set()
        self._port: Port | None = None
        self._is_announced = False  # the port: an ACCEPT_RECEIVER_MSG may have arrived
        self._confirmations: Confirmations | None = None
        self._sending: asyncio.Task[None] | None = None
        self._outcome: Outcome | None = None
        self._error: Exception | None = None  # an internal error while the message was being sent

    @property
    def is_in_flight(self) -> bool:
        """Return True if octets of the message have been sent, so that a confirmation may still come."""
        return self._machine.state in _IN_FLIGHT and self._outcome is None

    async def run(self) -> Outcome:
        """Send the message. Return what is to be done with it."""
        if self._message.outgoing.is_certain:
            # Opened before the question, so that an answer finds a port; nothing is accepted on it before 3.3.
            self._port = await self._context.ports.opened(PORTS_AGAIN_S, self._peer_key(), self._on_wait)
        try:
            with self._context.findreceiver.asking(self._message.key, self._answered):
                self._post(self._machine.send(self._message.outgoing, now()))
                while self._outcome is None:
                    actions = await self._next()
                    if self._error is not None:
                        raise self._error
                    await self._do_all(actions)
                return self._outcome
        finally:
            self._close(rests=True)
            if self._sending is not None:
                await asyncio.gather(self._sending, return_exceptions=True)

    async def _next(self) -> list[SenderAction]:
        """Wait for an event or the deadline. Return the actions that follow."""
        deadline = self._machine.deadline()
        try:
            async with asyncio.timeout(_left(deadline)):
                return await self._inbox.get()
        except TimeoutError:
            return self._timed_out(deadline)

    def _timed_out(self, deadline: float | None) -> list[SenderAction]:
        """Handle a timeout, but first what arrived before it and has not been read yet (4.2)."""
        if self._confirmations is not None:
            self._confirmations.read_pending()
        with contextlib.suppress(asyncio.QueueEmpty):
            return self._inbox.get_nowait()
        return self._machine.on_time(max(now(), deadline or 0.0))

    def _post(self, actions: list[SenderAction]) -> None:
        """Wake up `run`, also without actions: the deadline may have changed."""
        self._inbox.put_nowait(actions)

    # the machine's actions

    async def _do_all(self, actions: list[SenderAction]) -> None:
        """Carry out actions in order; after a failure the state machine decides anew."""
        for action in actions:
            if not await self._do(action):
                self._post(self._machine.failed(now()))
                return

    async def _do(self, action: SenderAction) -> bool:
        match action:
            case Ask():
                message = self._message
                self._asked = self._context.questions.ask(message.key, message.peers, action.receiver)
            case Approve():
                await self._approve(action.offer)
            case Keep():
                return await self._keep(action.kept)
            case SendData():
                self._sending = asyncio.create_task(self._send(action.offer))
            case CloseAll():
                self._close(action.is_timed_out)
            case Refuse():
                self._context.counts.unheard(action.why.value)
            case _:
                self._outcome = action
        return True

    def _answered(self, offer: Offer) -> Unheard | None:
        """Handle an ACCEPT_SENDER_MSG for the key (3.3). Return why it is not taken, or None."""
        if offer.source not in {address for address, _ in self._asked}:
            return Unheard.NOT_LISTED
        actions = self._machine.answered(offer, now())
        self._post([action for action in actions if not isinstance(action, Refuse)])
        return next((action.why for action in actions if isinstance(action, Refuse)), None)

    async def _approve(self, offer: Offer) -> None:
        """Send ACCEPT_RECEIVER_MSG (3.3)."""
        settings, deadline = self._settings, self._machine.deadline()
        self.receiver = offer.source
        if not self._has_port_for(offer.source):
            self._context.findreceiver.decline(offer)
            self._post(self._machine.failed(now()))
            return
        self._listen(offer)
        try:
            async with asyncio.timeout(_left(deadline)):
                await connections.send_message(
                    settings.host,
                    offer.source,
                    offer.accept_port,
                    settings.connect_timeout_s,
                    lambda local: self._approval(offer, local),
                )
        except TimeoutError:
            late = max(now(), deadline or 0.0)
            self._post(self._machine.on_time(late) or self._machine.failed(late))
        except OSError:
            self._post(self._machine.failed(now()))
        else:
            self._post(self._machine.approved(now()))

    def _approval(self, offer: Offer, local: str) -> bytes:
        self._is_announced = True
        outgoing = self._message.outgoing
        port = self._port.number if self._port is not None else ZERO_ID
        message = AcceptReceiverMsg(self._address(offer, local), port, outgoing.id, outgoing.quality)
        return encode_accept_receiver(message)

    def _peer_key(self) -> PeerKey:
        """Return the receiver that will confirm the message, where it is known (4.2)."""
        receiver = self._message.outgoing.kept.receiver
        return ANY_PEER if receiver is None else _confirming(receiver)

    def _has_port_for(self, source: str) -> bool:
        """Assign the port to this receiver, or another one if it rests (1.2). Return whether there is one if needed."""
        if self._port is None or self._port.assign(_confirming(source)):
            return True
        port, self._port = self._port, None
        port.close(rests=False)
        self._port = self._context.ports.open(_confirming(source))
        return self._port is not None

    def _listen(self, offer: Offer) -> None:
        if self._port is not None:
            omits = self._context.machines.options(offer.source).omit_address
            self._confirmations = Confirmations(
                self._port,
                offer.source,
                omits,
                self._context.counts,
                lambda message: self._post(self._machine.ended(message, offer.source, now())),
            )
            self._confirmations.start()

    async def _send(self, offer: Offer) -> None:
        """Send DATA_MSG (3.4)."""
        settings = self._settings
        try:
            place = (offer.source, offer.data_port)
            sock = await connections.connected_patiently(settings.host, *place, settings.connect_timeout_s)
            with sock:
                self._post(self._machine.begun(now()))
                if self._machine.state is not SenderState.SENDING:  # the attempt is over
                    return
                address = self._address(offer, sock.getsockname()[0])
                data = encode_data(DataMsg(address, self._message.key, self._message.record))
                await connections.sent(sock, data, lambda: self._post(self._machine.sent(now())))
        except OSError:
            self._post(self._machine.failed(now()))
        except Exception as error:  # noqa: BLE001 - `run` raises it
            self._error = error
            self._post([])

    def _address(self, offer: Offer, local: str) -> str | None:
        """Return the field `address` (2.2); for a certain message, that of the agent that gave its id (2.3)."""
        if self._context.machines.options(offer.source).omit_address:
            return None
        return self._message.address or self._settings.address or local

    def _close(self, rests: bool) -> None:
        """Close everything opened for the attempt; a port that was not announced needs no rest."""
        if self._sending is not None:
            self._sending.cancel()
        if self._confirmations is not None:
            self._confirmations.close()
            self._confirmations = None
        if self._port is not None:
            self._port.close(rests and self._is_announced)
            self._port = None


def _confirming(receiver: str) -> PeerKey:
    """Return the user of a port for confirmations, which name no key."""
    return PeerKey(receiver, 0)


def _left(deadline: float | None) -> float | None:
    """Return the seconds left."""
    return None if deadline is None else max(deadline - now(), 0.0)

"""One attempt to send one message: what the machine says is done here, in its order (rqp_cast.md 3, 4)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from protos.rqp_cast import (
    ZERO_ID,
    AcceptReceiverMsg,
    Approve,
    Ask,
    Bury,
    CloseAll,
    DataMsg,
    EndTransmissionMsg,
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
from services.rqp.cast.sending.question_sender import AskedAddresses, QuestionSender
from services.rqp.cast.settings import CastSettings
from services.store.model import now

Outcome = Remove | PutBack | MoveToEnd | Bury | Hold
FATES = (Remove, PutBack, MoveToEnd, Bury, Hold)
PORTS_AGAIN_S = 1.0
# octets have left
_OUT = (SenderState.SENDING, SenderState.WAIT_FOR_CONFIRMATION, SenderState.BROKEN_OFF)


@dataclass(frozen=True, slots=True)
class SendingContext:
    """What all attempts of a process work with."""

    settings: CastSettings
    machines: Machines
    counts: Counts
    asker: QuestionSender
    findreceiver: FindReceiver
    ports: Ports  # endtransmission_ports


@dataclass(frozen=True, slots=True)
class Transmission:
    """What is sent: `record` is `u32 message_size, data`; `address` is of the agent that gave the id."""

    outgoing: Outgoing
    key: int
    address: str
    record: bytes
    peers: tuple[str, ...]  # groups that may have it; (): all machines


class Attempt:
    """`run` once. Cancelled, it leaves nothing open."""

    def __init__(
        self,
        means: SendingContext,
        machine: Sender,
        load: Transmission,
        keep: Callable[[Kept], Awaitable[bool]],
        on_wait: Callable[[], None],
    ) -> None:
        """keep: makes it durable; False if that cannot be done. on_wait: it cannot begin, as there is no port."""
        self._means = means
        self._settings = means.settings
        self._machine = machine
        self._load = load
        self._keep = keep
        self._on_wait = on_wait
        self.receiver = ""  # the address of the one whose answer was taken; "" while there is none
        self._inbox: asyncio.Queue[list[SenderAction]] = asyncio.Queue()
        self._asked: AskedAddresses = set()
        self._port: Port | None = None
        self._is_told = False  # the port: an ACCEPT_RECEIVER_MSG may have arrived
        self._confirmations: Confirmations | None = None
        self._sending: asyncio.Task[None] | None = None
        self._fate: Outcome | None = None
        self._fault: Exception | None = None  # of ours, while the message was being sent

    @property
    def is_out(self) -> bool:
        """Octets of the message have left, so that its end may still be learnt."""
        return self._machine.state in _OUT and self._fate is None

    async def run(self) -> Outcome:
        """What is to be done with the message."""
        if self._load.outgoing.is_certain:
            # Before the question: an answer must not find all ports used up. Nobody is heard on it before 3.3.
            self._port = await self._means.ports.opened(PORTS_AGAIN_S, self._whom(), self._on_wait)
        try:
            with self._means.findreceiver.asking(self._load.key, self._answered):
                self._post(self._machine.send(self._load.outgoing, now()))
                while self._fate is None:
                    actions = await self._next()
                    if self._fault is not None:
                        raise self._fault
                    await self._do_all(actions)
                return self._fate
        finally:
            self._close(rests=True)
            if self._sending is not None:
                await asyncio.gather(self._sending, return_exceptions=True)

    async def _next(self) -> list[SenderAction]:
        """What is to be done next: as something happens, or the time is up."""
        deadline = self._machine.deadline()
        try:
            async with asyncio.timeout(_left(deadline)):
                return await self._inbox.get()
        except TimeoutError:
            return self._timed_out(deadline)

    def _timed_out(self, deadline: float | None) -> list[SenderAction]:
        """What has happened before is told before, also where it still waits to be read (4.2)."""
        if self._confirmations is not None:
            self._confirmations.read_pending()
        with contextlib.suppress(asyncio.QueueEmpty):
            return self._inbox.get_nowait()
        return self._machine.on_time(max(now(), deadline or 0.0))

    def _post(self, actions: list[SenderAction]) -> None:
        """Also none: the deadline may be another now."""
        self._inbox.put_nowait(actions)

    # what the machine says

    async def _do_all(self, actions: list[SenderAction]) -> None:
        """Each before the next; what fails ends the row, and the machine says what is done instead."""
        for action in actions:
            if not await self._do(action):
                self._post(self._machine.failed(now()))
                return

    async def _do(self, action: SenderAction) -> bool:
        match action:
            case Ask():
                self._asked = self._means.asker.ask(self._load.key, self._load.peers, action.receiver)
            case Approve():
                await self._approve(action.offer)
            case Keep():
                return await self._keep(action.kept)
            case SendData():
                self._sending = asyncio.create_task(self._send(action.offer))
            case CloseAll():
                self._close(action.is_timed_out)
            case Refuse():
                self._means.counts.unheard(action.why.value)
            case _:
                self._fate = action
        return True

    def _answered(self, offer: Offer) -> Unheard | None:
        """An ACCEPT_SENDER_MSG for our key (3.3)."""
        if offer.source not in {address for address, _ in self._asked}:
            return Unheard.NOT_LISTED
        actions = self._machine.answered(offer, now())
        self._post([action for action in actions if not isinstance(action, Refuse)])
        return next((action.why for action in actions if isinstance(action, Refuse)), None)

    async def _approve(self, offer: Offer) -> None:
        """ACCEPT_RECEIVER_MSG (3.3)."""
        settings, deadline = self._settings, self._machine.deadline()
        self.receiver = offer.source
        if not self._has_port_for(offer.source):
            self._means.findreceiver.decline(offer)
            self._post(self._machine.failed(now()))
            return
        self._listen(offer)
        try:
            async with asyncio.timeout(_left(deadline)):
                await connections.say(
                    settings.host,
                    offer.source,
                    offer.accept_port,
                    settings.connect_timeout_s,
                    lambda ours: self._approval(offer, ours),
                )
        except TimeoutError:
            late = max(now(), deadline or 0.0)
            self._post(self._machine.on_time(late) or self._machine.failed(late))
        except OSError:
            self._post(self._machine.failed(now()))
        else:
            self._post(self._machine.approved(now()))

    def _approval(self, offer: Offer, ours: str) -> bytes:
        self._is_told = True
        outgoing = self._load.outgoing
        port = self._port.number if self._port is not None else ZERO_ID
        message = AcceptReceiverMsg(self._address(offer, ours), port, outgoing.id, outgoing.quality)
        return encode_accept_receiver(message)

    def _whom(self) -> PeerKey:
        """Who will confirm it, where that is known (4.2)."""
        receiver = self._load.outgoing.kept.receiver
        return ANY_PEER if receiver is None else _confirming(receiver)

    def _has_port_for(self, source: str) -> bool:
        """Ours, or another one if ours rests for this receiver (1.2). Also if none is needed."""
        if self._port is None or self._port.assign(_confirming(source)):
            return True
        ours, self._port = self._port, None
        ours.close(rests=False)
        self._port = self._means.ports.open(_confirming(source))
        return self._port is not None

    def _listen(self, offer: Offer) -> None:
        if self._port is not None:
            omits = self._means.machines.manners(offer.source).omit_address
            self._confirmations = Confirmations(
                self._port,
                offer.source,
                omits,
                self._means.counts,
                lambda message: self._ended(offer, message),
            )
            self._confirmations.start()

    def _ended(self, offer: Offer, message: EndTransmissionMsg) -> None:
        self._post(self._machine.ended(message, offer.source, now()))

    async def _send(self, offer: Offer) -> None:
        """DATA_MSG (3.4)."""
        settings = self._settings
        try:
            place = (offer.source, offer.data_port)
            sock = await connections.connected_patiently(settings.host, *place, settings.connect_timeout_s)
            with sock:
                self._post(self._machine.begun(now()))
                if self._machine.state is not SenderState.SENDING:  # it was over, now or before
                    return
                address = self._address(offer, sock.getsockname()[0])
                data = encode_data(DataMsg(address, self._load.key, self._load.record))
                await connections.sent(sock, data, lambda: self._post(self._machine.sent(now())))
        except OSError:
            self._post(self._machine.failed(now()))
        except Exception as fault:  # noqa: BLE001 - `run` raises it
            self._fault = fault
            self._post([])

    def _address(self, offer: Offer, ours: str) -> str | None:
        """The field `address` (2.2): of a certain message, that of who gave its id, whichever replica sends (2.3)."""
        if self._means.machines.manners(offer.source).omit_address:
            return None
        return self._load.address or self._settings.address or ours

    def _close(self, rests: bool) -> None:
        """Everything that was opened for the attempt; a port that nobody was told of needs no rest."""
        if self._sending is not None:
            self._sending.cancel()
        if self._confirmations is not None:
            self._confirmations.close()
            self._confirmations = None
        if self._port is not None:
            self._port.close(rests and self._is_told)
            self._port = None


def _confirming(receiver: str) -> PeerKey:
    """A confirmation names no key."""
    return PeerKey(receiver, 0)


def _left(deadline: float | None) -> float | None:
    """Seconds until then."""
    return None if deadline is None else max(deadline - now(), 0.0)

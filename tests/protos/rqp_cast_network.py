"""A sender and two receivers on a network that loses, delays and cuts; any of them may crash at any time.

The sender's queue and notes outlive its crash; a receiver keeps its queue, its dead letters, and the ids it remembers.
Time is simulated: a day takes no time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from protos.rqp_cast import (
    AcceptReceiverMsg,
    Approve,
    Ask,
    Bury,
    CloseAll,
    EndTransmissionMsg,
    Hold,
    Keep,
    Kept,
    MoveToEnd,
    Offer,
    Outgoing,
    PutBack,
    Quality,
    ReceiverSettings,
    ReceiverState,
    Refuse,
    Remove,
    Result,
    SendData,
    Sender,
    SenderAction,
    SenderSettings,
    SenderState,
)
from tests.protos.rqp_cast_samples import KEY, OTHER, RECEIVER, SENDER, data_msg
from tests.protos.rqp_cast_world import Confirming, ReceivingAgent, World


@dataclass
class Entry:
    """A message in the transmission queue, with its note."""

    message: Outgoing
    body: bytes


class SendingAgent:
    """A sending agent with the messages for one key."""

    def __init__(self, world: World, receivers: dict[str, ReceivingAgent], settings: SenderSettings) -> None:
        self.world = world
        self.receivers = receivers
        self.settings = settings
        self.queue: list[Entry] = []
        self.removed: Counter[bytes] = Counter()
        self.buried: list[Entry] = []
        self.held: list[Entry] = []
        self.alive_at = 0.0
        self.attempt = 0  # events of another attempt are dropped, as its sockets are closed
        self.entry: Entry | None = None
        self.machine = Sender(KEY, settings)

    def crash(self, down_s: float) -> None:
        self.machine = Sender(KEY, self.settings)
        self.attempt += 1
        self.entry = None
        self.alive_at = self.world.now + down_s

    def pump(self) -> None:
        """Send the next message that is due, if there is one."""
        self.do(self.machine.on_time(self.world.now))
        while self.machine.state is SenderState.IDLE and self.world.now >= self.alive_at:
            ready = [each for each in self.queue if (each.message.kept.not_before or 0.0) <= self.world.now]
            if not ready:
                return
            self.entry = ready[0]
            if not self.entry.message.is_certain:
                self.queue.remove(self.entry)  # removed (4.1)
            self.do(self.machine.send(self.entry.message, self.world.now))

    def next_at(self) -> float | None:
        due = [each.message.kept.not_before or 0.0 for each in self.queue]
        times = [self.machine.deadline() or (max(self.alive_at, min(due)) if due else None)]
        return next((each for each in times if each is not None), None)

    def do(self, actions: list[SenderAction]) -> None:
        for action in actions:
            match action:
                case Ask():
                    self.ask(action)
                case Approve():
                    self.approve(action)
                case Keep():
                    if self.world.strikes():
                        self.do(self.machine.failed(self.world.now))
                        return
                    self.keep(action.kept)
                case SendData():
                    self.send(action.offer)
                case CloseAll():
                    self.attempt += 1
                case Refuse():
                    pass
                case Remove() | PutBack() | MoveToEnd() | Bury() | Hold():
                    self.end(action)

    def end(self, action: Remove | PutBack | MoveToEnd | Bury | Hold) -> None:
        entry, self.entry = self.entry, None
        assert entry is not None
        if entry in self.queue:
            self.queue.remove(entry)
        if isinstance(action, MoveToEnd | Bury):
            entry.message = Outgoing(entry.message.quality, entry.message.id, action.kept)
        match action:
            case Remove():
                self.removed[entry.body] += 1
            case PutBack() | MoveToEnd():
                self.queue.append(entry)
            case Bury():
                self.buried.append(entry)
            case Hold():
                self.held.append(entry)

    def keep(self, kept: Kept) -> None:
        assert self.entry is not None
        self.entry.message = Outgoing(self.entry.message.quality, self.entry.message.id, kept)

    def ask(self, question: Ask) -> None:
        for name, receiver in self.receivers.items():
            if question.receiver in (None, name) and not self.world.strikes():
                self.world.soon(lambda receiver=receiver: receiver.question(self.answered))

    def answered(self, offer: Offer) -> None:
        if not self.world.strikes() and self.world.now >= self.alive_at:
            self.do(self.machine.answered(offer, self.world.now))

    def approve(self, action: Approve) -> None:
        receiver, attempt, certain = self.receivers[action.offer.source], self.attempt, bool(action.id)
        message = AcceptReceiverMsg(SENDER, 11352 if certain else 0, action.id, action.quality)
        confirm, port = self.confirming(attempt), action.offer.accept_port
        is_lost = self.world.strikes()

        def connected() -> None:
            if attempt != self.attempt:
                return
            if is_lost or not receiver.is_open(port, ReceiverState.WAIT_FOR_APPROVAL):
                self.do(self.machine.failed(self.world.now))
                return
            receiver.approve(port, message, confirm)
            self.do(self.machine.approved(self.world.now))

        self.world.soon(connected)

    def send(self, offer: Offer) -> None:
        assert self.entry is not None
        receiver, attempt, wire = self.receivers[offer.source], self.attempt, data_msg(self.entry.body)
        confirm, port = self.confirming(attempt), offer.data_port

        def connected() -> None:
            if attempt != self.attempt:
                return
            if self.world.strikes() or not receiver.is_open(port, ReceiverState.WAIT_FOR_MESSAGE):
                self.do(self.machine.failed(self.world.now))
                return
            self.do(self.machine.begun(self.world.now))
            if attempt == self.attempt:
                self.world.soon(lambda: transfer(self.world.random.randrange(1, len(wire))))

        def transfer(size: int) -> None:
            if attempt != self.attempt or self.world.strikes():  # part of it, then the connection breaks
                self.world.soon(lambda: receiver.data(port, wire[:size], True, confirm))
                if attempt == self.attempt:
                    self.do(self.machine.failed(self.world.now))
                return
            is_cut = self.world.strikes()  # the kernel has it all, but it does not arrive
            arriving = wire[:size] if is_cut else wire
            self.world.soon(lambda: receiver.data(port, arriving, is_cut, confirm))
            if self.world.random.random() < 0.5:
                self.do(self.machine.sent(self.world.now))
            else:  # reported only after the receiver may have answered; a crash may come between
                self.world.soon(report_sent)

        def report_sent() -> None:
            if attempt == self.attempt:
                self.do(self.machine.sent(self.world.now))

        self.world.soon(connected)

    def confirming(self, attempt: int) -> Confirming:
        """Return the receiver of confirmations at endtransmission_port, which is open as long as the attempt."""

        def confirm(message: EndTransmissionMsg, source: str) -> None:
            if attempt == self.attempt:
                self.do(self.machine.ended(message, source, self.world.now))

        return confirm


class Network:
    """The network with its agents."""

    def __init__(self, random: Random, trouble: float, duplicate_result: Result) -> None:
        self.world = World(random, trouble)
        configured = ReceiverSettings(duplicate_result=duplicate_result)
        self.receivers = {
            name: ReceivingAgent(self.world, name, configured, SenderSettings().dedupe_window_s)
            for name in (RECEIVER, OTHER)
        }
        self.sender = SendingAgent(self.world, self.receivers, SenderSettings())

    def put(self, count: int, uncertain: bool = True) -> None:
        for number in range(1, count + 1):
            certain = Outgoing(Quality.HIGH_QUALITY, number)
            self.sender.queue.append(Entry(certain, b"certain %d" % number))
            if not uncertain:
                continue
            self.sender.queue.append(Entry(Outgoing(Quality.LOW_QUALITY, 0), b"uncertain %d" % number))

    def step(self) -> bool:
        """Run the next event; return False if there is no event."""
        times = [self.world.next_at(), self.sender.next_at()]
        for receiver in self.receivers.values():
            times += [session.deadline() for session in receiver.sessions.values()]
        due = [each for each in times if each is not None]
        if not due:
            return False
        self.world.now = max(self.world.now, min(due))
        self.world.run_due()
        for receiver in self.receivers.values():
            receiver.on_time(self.sender.confirming(self.sender.attempt))
        self.sender.pump()
        return True

    def inserted(self) -> Counter[bytes]:
        return Counter(body for receiver in self.receivers.values() for body in receiver.inserted)

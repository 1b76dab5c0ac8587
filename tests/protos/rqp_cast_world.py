"""Time and chance in the simulated network, and a receiving agent with its own store."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from protos.rqp_cast import (
    RESERVATION_S,
    AcceptReceiverMsg,
    BuryReceived,
    Confirm,
    EndTransmissionMsg,
    Free,
    Insert,
    Insertion,
    Offer,
    ReceiverAction,
    ReceiverSession,
    ReceiverSettings,
    ReceiverState,
    fingerprint,
    identity,
)
from tests.protos.rqp_cast_samples import KEY, SENDER


class World:
    """Time, chance, and all pending events."""

    def __init__(self, random: Random, trouble: float) -> None:
        self.random = random
        self.trouble = trouble  # the probability of a fault at each step
        self.now = 0.0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def strikes(self) -> bool:
        return self.random.random() < self.trouble

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (self.now + seconds, self._count, what))

    def soon(self, what: Callable[[], None]) -> None:
        """Schedule a delivery over the network, which is sometimes slow."""
        slow = self.trouble and self.random.random() < 0.1
        self.after(self.random.uniform(0.5, 20.0) if slow else self.random.uniform(0.001, 0.1), what)

    def next_at(self) -> float | None:
        return self._agenda[0][0] if self._agenda else None

    def run_due(self) -> None:
        while self._agenda and self._agenda[0][0] <= self.now:
            heapq.heappop(self._agenda)[2]()


@dataclass
class ReceivingAgent:
    """A receiving agent with its own store, which has one queue."""

    world: World
    name: str
    settings: ReceiverSettings
    window_s: float
    inserted: list[bytes] = field(default_factory=list)
    dead: list[BuryReceived] = field(default_factory=list)
    ids: dict[bytes, tuple[bytes, float]] = field(default_factory=dict)
    sessions: dict[int, ReceiverSession] = field(default_factory=dict)
    reserved: tuple[int, float] = (0, 0.0)  # the session that has it, and until when
    ports: int = 0

    def question(self, answer: Callable[[Offer], None]) -> None:
        if self.reserved[1] > self.world.now:
            return
        self.ports += 1
        port = self.ports
        self.reserved = (port, self.world.now + RESERVATION_S)
        self.sessions[port] = ReceiverSession(KEY, SENDER, self.settings, self.world.now)
        self.world.soon(lambda: answer(Offer(self.name, self.name, KEY, port, port)))

    def is_open(self, port: int, state: ReceiverState) -> bool:
        return port in self.sessions and self.sessions[port].state is state

    def approve(self, port: int, message: AcceptReceiverMsg, confirm: Confirming) -> None:
        if port in self.sessions:
            self.do(port, self.sessions[port].approved(message, self.world.now), confirm)

    def data(self, port: int, wire: bytes, is_cut: bool, confirm: Confirming) -> None:
        if (session := self.sessions.get(port)) is None:
            return
        if session.state is not ReceiverState.WAIT_FOR_APPROVAL:
            self.do(port, session.receive(wire, self.world.now), confirm)
        if is_cut:
            self.do(port, session.lost(self.world.now), confirm)

    def do(self, port: int, actions: list[ReceiverAction], confirm: Confirming) -> None:
        for action in actions:
            match action:
                case Insert():
                    self.world.soon(lambda insert=action: self.insert(port, insert, confirm))
                case BuryReceived():
                    self.dead.append(action)
                case Free():
                    self.sessions.pop(port)
                    if self.reserved[0] == port:
                        self.reserved = (0, 0.0)
                case Confirm():
                    end = EndTransmissionMsg(self.name, action.id, action.result)
                    if not self.world.strikes():
                        self.world.soon(lambda end=end: confirm(end, self.name))

    def insert(self, port: int, insert: Insert, confirm: Confirming) -> None:
        """Insert in one atomic step; its answer may be lost, and the agent may have crashed meanwhile."""
        outcome = self.stored(port, insert)
        if self.world.strikes():
            outcome = Insertion.UNKNOWN
        if port in self.sessions:
            self.do(port, self.sessions[port].inserted(outcome), confirm)

    def stored(self, port: int, insert: Insert) -> Insertion:
        if self.reserved[0] != port:  # fenced: another session may have the queue (3.2)
            return Insertion.REFUSED
        key, content = identity(insert.agent, insert.id), fingerprint(KEY, insert.record[4:])
        known, at = self.ids.get(key, (b"", -self.window_s))
        if insert.id and self.world.now - at < self.window_s:
            return Insertion.DUPLICATE if known == content else Insertion.CLASH
        if self.world.strikes():
            return Insertion.FULL
        if insert.id:
            self.ids[key] = (content, self.world.now)
        self.inserted.append(insert.record[4:])
        return Insertion.STORED

    def crash(self) -> None:
        self.sessions.clear()

    def on_time(self, confirm: Confirming) -> None:
        for port, session in list(self.sessions.items()):
            self.do(port, session.on_time(self.world.now), confirm)


Confirming = Callable[[EndTransmissionMsg, str], None]

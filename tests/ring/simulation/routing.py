"""Handling of USERs in a node of ours, by its `Relay` (ring.md 5.3 to 5.7)."""

from __future__ import annotations

from typing import Protocol

from protos.ring import (
    Answer,
    CameBack,
    Deliver,
    Drop,
    Frame,
    Operation,
    PassOn,
    Questions,
    Relay,
    Request,
    Settle,
    TakenOff,
    encode_frame,
)
from tests.ring.simulation.store import Disk, Outgoing, Store

NOTHING = Questions()


class Beginner(Protocol):
    def begin(self, payload: bytes) -> None: ...


class Routing:
    """A router. It is called only while the store is up; its results are in the store before the predecessor's `A`."""

    def __init__(self, node: Beginner, relay: Relay, disk: Disk, store: Store, forwards: bool) -> None:
        self._node = node
        self.relay = relay
        self._disk = disk
        self._store = store
        self._forwards = forwards

    def take(self, payload: bytes, is_alone: bool) -> None:
        match self.relay.route(payload):
            case Answer(frame):
                done = frame.operation is Operation.OK
                (self._disk.acknowledged if done else self._disk.refused).add(frame.request_id)
            case CameBack(frame):
                self._disk.refused.add(frame.request_id)
            case Request(frame, _, again=True):
                self._reply(frame)
            case Request(frame) if frame.queue in self._store.queues:
                self._reply(frame)
                self.relay.served(frame)
            case Request(frame, around) | PassOn(frame, around):
                self.relay.passed(frame)
                self._pass_on(payload, around)
            case Settle(frame):
                self.relay.passed(frame)
                self._pass_on(payload, NOTHING)
            case Deliver(body, around):
                self._disk.inbox[body] += 1
                if self._forwards:
                    self._pass_on(payload, around)
            case TakenOff() if is_alone:
                self._disk.alone.add(payload)
            case Drop() | TakenOff():
                pass

    def _reply(self, request: Frame) -> None:
        payload = encode_frame(self._store.carry_out(request))
        self.relay.put_on(payload)
        self._disk.outgoing.append(Outgoing(payload))

    def _pass_on(self, payload: bytes, around: Questions) -> None:
        self._disk.outgoing.extend(Outgoing(each) for each in around.with_between(payload))

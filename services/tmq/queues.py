"""Whole queues: OPEN, CLOSE, CREATE, DELETE, and SELECT's count of one (tmq.md 2, 3)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from protos import tmq
from protos.tmq import Operation
from services.kit.session import Inflow, Slot
from services.queueing import decode_name
from services.store import Pipe, Queue, StoreError
from services.store.model import OutcomeUnknown
from services.tmq.conversation import TmqConversation

FORBIDDEN = {
    Operation.CREATE: "create_forbidden",
    Operation.DELETE: "not_owner",
}  # why the edge itself says no


class Handle(NamedTuple):
    """A queue that this connection has opened."""

    queue: Queue
    pipe: Pipe


Handles = dict[bytes, Handle]  # by MQID


class Queues:
    """What one connection asks about whole queues, and which it has open (2.3)."""

    __slots__ = ("_conversation", "_inflow", "handles")

    def __init__(self, conversation: TmqConversation, inflow: Inflow[tmq.Event]) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self.handles: Handles = {}

    # OPEN, CLOSE

    def open(self, event: tmq.Open) -> None:
        service = self._conversation.service
        slot = self._conversation.expect()
        self._inflow.hold()
        opened = service.open(decode_name(event.name), self._conversation.source.client)
        service.background.run_read(opened, partial(self._opened, slot, event.name))

    def _opened(self, slot: Slot, name: bytes, queue: Queue | StoreError) -> None:
        conversation = self._conversation
        mqid = tmq.mqid_of(name)
        full = len(self.handles) >= conversation.service.settings.max_open_queues and mqid not in self.handles
        if isinstance(queue, StoreError) or full:
            why = (queue.reason, str(queue)) if isinstance(queue, StoreError) else ("too_many_open",)
            conversation.wire.refuse(*why)
            conversation.reply(slot, tmq.nil_mqid(conversation.dialect), Operation.OPEN._value_, 0, 1)
        else:
            self.handles[mqid] = Handle(queue, conversation.service.pipe(queue))
            conversation.reply(slot, mqid, Operation.OPEN._value_, 1, 1)
        self._inflow.free()

    def close(self, event: tmq.Close) -> None:
        is_open = self.handles.pop(event.mqid, None) is not None
        if not is_open:
            self._conversation.wire.refuse("mqid_not_open")
        self._conversation.answer(Operation.CLOSE, is_open)

    # CREATE, DELETE

    def create(self, event: tmq.Create) -> None:
        slot = self._conversation.expect()
        self._inflow.hold()
        service = self._conversation.service
        work = service.create(decode_name(event.name))
        service.background.run(work, partial(self._done, slot, Operation.CREATE))

    def delete(self, event: tmq.Delete) -> None:
        slot = self._conversation.expect()
        self._inflow.hold()
        service = self._conversation.service
        work = service.delete(decode_name(event.name))
        service.background.run(work, partial(self._done, slot, Operation.DELETE))

    def _done(self, slot: Slot, operation: Operation, result: bool | StoreError) -> None:
        conversation = self._conversation
        if isinstance(result, OutcomeUnknown):
            conversation.unknown(result)
            return
        ok = result is True
        if not ok:
            reason = result.reason if isinstance(result, StoreError) else FORBIDDEN[operation]
            conversation.wire.refuse(reason, operation.value)
        conversation.status(slot, operation, ok)
        self._inflow.free()

    # SELECT

    def select(self, event: tmq.Select, *, expired: bool) -> None:
        """expired: within a transaction whose time is over, where every operation fails (5.4)."""
        conversation = self._conversation
        handle = self.handles.get(event.mqid)
        slot = conversation.expect()
        if handle is None or expired:
            conversation.wire.refuse("transaction_expired" if expired else "mqid_not_open")
            self._tell(slot, event.count, tmq.UNUSABLE)
            return
        self._inflow.hold()
        handle.pipe.messages.count(
            conversation.source, handle.queue, partial(self._counted, slot, event.count)
        )

    def _counted(self, slot: Slot, times: int, number: int | StoreError) -> None:
        if isinstance(number, OutcomeUnknown):
            self._conversation.unknown(number)
            return
        if isinstance(number, StoreError):
            self._conversation.wire.refuse(number.reason, str(number))
            number = tmq.UNUSABLE
        self._tell(slot, times, number)
        self._inflow.free()

    def _tell(self, slot: Slot, times: int, number: int) -> None:
        conversation = self._conversation
        good = times if number != tmq.UNUSABLE else 0
        conversation.reply(
            slot,
            tmq.encode_count(conversation.dialect, number) * times,
            Operation.SELECT._value_,
            good,
            times,
        )

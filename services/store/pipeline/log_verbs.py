"""Operations of the text service's log."""

from __future__ import annotations

from services.store.model.operations import Phase, Placed, Send, Source
from services.store.pipeline.gate import Gate
from services.store.pipeline.traced import Traced


class LogVerbs:
    """Log operations of one domain; callbacks work as those of `Messages`."""

    def __init__(self, gate: Gate, traced: Traced | None) -> None:
        """Trace sends with `traced`, if the process is traced."""
        self._gate = gate
        self._traced = traced

    def send(self, source: Source, send: Send, replicas: int) -> None:
        """Append lines to the log and copies to queues, all or nothing.

        Answers BindingsChanged if the copies must be made again. A queue's access list is not checked: a queue with
        copies admits the text service for any client (`bindings.contradiction`).
        """
        if self._traced is not None:
            self._traced.send(source, send)
        gate = self._gate
        error = gate.refuses() if gate.may_refuse else None
        if error is not None:
            gate.tallies.of(None).refuse(error, send.count)
            send.done(error)
            return
        copies = send.copies
        # count copies as messages: small calls keep the store busy while the next one is gathered
        messages = max(send.count, len(copies))
        call = gate.call_for(messages, len(send.block), 0, len(copies))
        call.place(source, Phase.PUBLISH).sends.append(send)
        call.replicas = max(call.replicas, replicas)
        for queue, _ in copies:
            call.touch(queue)

    def head(self, source: Source, placed: Placed) -> None:
        """Ask for the end of the log."""
        refused = self._gate.refusal(source)
        if refused is not None:
            placed(refused)
            return
        self._gate.call_for(0, 0, 0).place(source, Phase.COUNT).heads.append(placed)

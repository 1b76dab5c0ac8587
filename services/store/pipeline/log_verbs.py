"""The verbs of the text service's log, which is no queue."""

from __future__ import annotations

from services.store.model.operations import Phase, Placed, Send, Source
from services.store.pipeline.gate import Gate
from services.store.pipeline.traced import Traced


class LogVerbs:
    """Of one domain; answered as `Messages` are."""

    def __init__(self, gate: Gate, traced: Traced | None) -> None:
        self._gate = gate
        self._traced = traced

    def send(self, source: Source, send: Send, replicas: int) -> None:
        """Append to the log: all of it, and all copies, or nothing. BindingsChanged: make it anew.

        A queue that wants copies admits the text service, without a question of identity (`bindings.contradiction`).
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
        # not all in one call: the next gathers while the store works on one
        messages = max(send.count, len(copies))
        call = gate.call_for(messages, len(send.block), 0, len(copies))
        call.place(source, Phase.PUBLISH).sends.append(send)
        call.replicas = max(call.replicas, replicas)
        for queue, _ in copies:
            call.touch(queue)

    def head(self, source: Source, placed: Placed) -> None:
        """Ask for the place behind everything that the log holds now."""
        refused = self._gate.refusal(source)
        if refused is not None:
            placed(refused)
            return
        self._gate.call_for(0, 0, 0).place(source, Phase.COUNT).heads.append(placed)

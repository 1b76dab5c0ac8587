"""The generator's ceiling: the same requests, to a server that only counts bytes and acknowledges."""

from __future__ import annotations

import contextlib
import struct
from typing import ClassVar

from benchmarks.generator import Bound, Generator, Load, Outcome
from benchmarks.peers.peer import BODY, Operation, Peer, Shape, dial
from benchmarks.peers.tmq import ENQ_OK, encode_dnq, encode_enq

ANY_MQID = b"0" * 64
SAMPLE_S = 0.5


class Ceiling(Peer):
    name = "ceiling"
    title = "(the generator's own ceiling)"
    promise = "nothing: a server that counts bytes and says yes"

    REQUESTS: ClassVar = {Operation.PUT: encode_enq(ANY_MQID), Operation.TAKE: encode_dnq(ANY_MQID)}
    REPLIES: ClassVar = {Operation.PUT: bytes([ENQ_OK]), Operation.TAKE: struct.pack(">i", len(BODY)) + BODY}

    def start(self) -> None:
        pass

    def version(self) -> str:
        return ""

    def measure(self, generator: Generator, shape: Shape, bound: Bound) -> dict[Operation, Outcome]:
        limit = Bound(count=50 * bound.count, seconds=min(bound.seconds, SAMPLE_S))
        return {operation: self._run(generator, shape, limit, operation) for operation in Operation}

    def _run(self, generator: Generator, shape: Shape, limit: Bound, operation: Operation) -> Outcome:
        request, reply = self.REQUESTS[operation], self.REPLIES[operation]
        with generator.sink(len(request), reply) as port:
            sockets = [dial(port) for _ in range(shape.connections)]
            load = Load(f"tmq-{operation.value}", sockets, [request] * len(sockets), shape.window)
            with contextlib.closing(load):
                return generator.run(load, limit)

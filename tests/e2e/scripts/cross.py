"""Send a message into each edge and take it from another one: cross.py QUEUE TAG EDGE=HOST:PORT ..., in a pod.

The queue has the number 7 for RQP/MCA, subscribes to TAG, and publishes under TAG.out. The script prints one line for
each way, and exits with 1 if one failed.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable

from protos import pubsub, ring, rqp_mca, tmq

PATIENCE_S = 20.0
NUMBER = 7
DIALECT = tmq.Dialect.DOCUMENT
PROFILE = rqp_mca.Profile.PACKED


class Line:
    def __init__(self, place: str) -> None:
        host, _, port = place.partition(":")
        self._socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self._stream = self._socket.makefile("rb")

    def ask(self, request: bytes, size: int) -> bytes:
        self._socket.sendall(request)
        return self._stream.read(size)

    def line(self, request: bytes = b"") -> bytes:
        self._socket.sendall(request)
        return self._stream.readline().strip()


def opened(line: Line, queue: bytes) -> bytes:
    mqid = tmq.parse_mqid(line.ask(tmq.encode_open(queue), tmq.MQID_BYTES))
    assert mqid is not None, "the queue cannot be opened"
    return mqid


def until_some(take: Callable[[], bytes | None]) -> bytes | None:
    end = time.monotonic() + PATIENCE_S
    while (body := take()) is None and time.monotonic() < end:
        time.sleep(0.05)
    return body


class Ways:
    def __init__(self, queue: bytes, tag: bytes, places: dict[str, str]) -> None:
        self._queue = queue
        self._tag = tag
        self._places = places
        self._echo = ring.echo_of(b"cross", queue)
        self._listener = Line(places["pubsub"])
        assert self._listener.line(pubsub.encode_subscribe(b"1", tag + b".out")) == b"OK"

    # in

    def put_tmq(self, body: bytes) -> None:
        line = Line(self._places["tmq"])
        enq = tmq.encode_enq(opened(line, self._queue), body)
        answer = line.ask(enq, tmq.reply_bytes(DIALECT, tmq.Operation.ENQ))
        assert tmq.parse_status(DIALECT, tmq.Operation.ENQ, answer)

    def put_ring(self, body: bytes) -> None:
        self._ring(ring.Push(self._echo, self._queue, [ring.encode_record(body)]))

    def put_pubsub(self, body: bytes) -> None:
        assert Line(self._places["pubsub"]).line(pubsub.encode_send(self._tag, body)) == b"OK"

    def put_rqp(self, body: bytes) -> None:
        line = Line(self._places["rqp"])
        reliable = rqp_mca.MessageType.RELIABLE
        for request, confirm in (
            (
                rqp_mca.encode_available_request(PROFILE, NUMBER),
                rqp_mca.encode_available_confirm(PROFILE, NUMBER),
            ),
            (rqp_mca.encode_data(PROFILE, NUMBER, reliable, body), rqp_mca.encode_data_confirm(PROFILE)),
        ):
            assert line.ask(request, len(confirm)) == confirm

    # out

    def take_tmq(self) -> bytes | None:
        line = Line(self._places["tmq"])
        mqid = opened(line, self._queue)

        def take() -> bytes | None:
            answer = line.ask(tmq.encode_dnq(mqid), tmq.reply_bytes(DIALECT, tmq.Operation.DNQ))
            length = tmq.parse_length(answer)
            return None if length is None else line.ask(b"", length)

        body = until_some(take)
        line.ask(tmq.encode_close(mqid), tmq.reply_bytes(DIALECT, tmq.Operation.CLOSE))  # settles the message
        return body

    def take_ring(self) -> bytes | None:
        return until_some(lambda: self._ring(ring.Pull(self._echo, self._queue, 1)) or None)

    def take_pubsub(self) -> bytes | None:
        return self._listener.line().removeprefix(b"MESSAGE 1 ")

    def _ring(self, request: ring.ClientRequest) -> bytes:
        line = Line(self._places["ring"])
        head = ring.parse_reply(line.ask(ring.encode_request(request), ring.HEAD_BYTES))
        said = line.ask(b"", head.size)
        assert head.operation is ring.Operation.OK, said
        return said


def main(queue: str, tag: str, *edges: str) -> int:
    places = dict(edge.split("=", 1) for edge in edges)
    ways = Ways(queue.encode(), tag.encode(), places)
    failures = 0
    for come, go in (
        *(("tmq", "ring"), ("ring", "tmq"), ("pubsub", "ring"), ("pubsub", "tmq")),
        *(("rqp", "tmq"), ("rqp", "ring")),
    ):
        body = f"from {come} to {go}".encode()
        getattr(ways, f"put_{come}")(body)
        texts = [ways.take_pubsub()] if come != "pubsub" else []  # text messages are not published again
        out = [getattr(ways, f"take_{go}")(), *texts]
        well = all(each == body for each in out)
        failures += not well
        print(f"{come} -> {go}{' and text' if texts else ''}: {'well' if well else out}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

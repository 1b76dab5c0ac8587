"""Run writers and readers in a pod through any fault; every acknowledged message must be delivered.

    load.py QUEUE EDGE=HOST:PORT ...

QUEUE has the number 9 for RQP/MCA, and subscribes to its own name.
Each writer puts one numbered message at a time and retries it until it is acknowledged, so a message may be delivered
twice, but must not be lost. A second writer per edge reconnects for each message and counts refused connections.
Readers take by TMQ and by the ring's client port. When the file STOP exists, writers end, readers take the remaining
messages, and the script prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from protos import pubsub, ring, rqp_mca, tmq

STOP = "/tmp/stop"
ANSWER_S = 10.0  # time-out of an answer, after which the connection is closed
AGAIN_S = 0.1
DRAIN_S = 90.0
PACE_S = 0.01  # between two messages of a writer: 400 per second in total, to leave processor time to starting pods
# between two connections of a reconnecting writer: short enough to hit gaps of hundredths of a second
ANEW_S = 0.02
READERS = 2  # per edge
NUMBER = 9
DIALECT = tmq.Dialect.DOCUMENT
PROFILE = rqp_mca.Profile.PACKED

Put = Callable[[bytes], bool]


class Refused(OSError):
    """The connection was refused."""


class Line:
    def __init__(self, host: str, port: int) -> None:
        """Connect to an edge. Raise Refused if that fails."""
        try:
            self._socket = socket.create_connection((host, port), ANSWER_S)
        except OSError as error:
            raise Refused(str(error)) from error
        self._stream = self._socket.makefile("rb")

    def ask(self, request: bytes, size: int) -> bytes:
        self._socket.sendall(request)
        return self.read(size)

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise OSError("it closed the connection")
        return data

    def line(self, request: bytes) -> bytes:
        self._socket.sendall(request)
        data = self._stream.readline()
        if not data.endswith(b"\n"):
            raise OSError("it closed the connection")
        return data

    def close(self) -> None:
        self._socket.close()


def by_tmq(line: Line, queue: str) -> Put:
    mqid = opened(line, queue)

    def put(body: bytes) -> bool:
        answer = line.ask(tmq.encode_enq(mqid, body), tmq.reply_bytes(DIALECT, tmq.Operation.ENQ))
        return tmq.parse_status(DIALECT, tmq.Operation.ENQ, answer)

    return put


def by_ring(line: Line, queue: str) -> Put:
    name = queue.encode()
    echo = ring.echo_of(b"load", name)

    def put(body: bytes) -> bool:
        request = ring.encode_request(ring.Push(echo, name, [ring.encode_record(body)]))
        head = ring.parse_reply(line.ask(request, ring.HEAD_BYTES))
        line.read(head.size)
        return head.operation is ring.Operation.OK

    return put


def by_pubsub(line: Line, queue: str) -> Put:
    return lambda body: line.line(pubsub.encode_send(queue.encode(), body)).strip() == b"OK"


def by_rqp(line: Line, _: str) -> Put:
    """Return a function that puts RELIABLE messages, which are stored once confirmed (protos/rqp_mca.md)."""

    def ask(request: bytes, confirm: bytes) -> bool:
        if line.ask(request, len(confirm)) != confirm:
            raise OSError("it said something else")  # the edge is stopping, or the queue is unavailable
        return True

    def put(body: bytes) -> bool:
        data = rqp_mca.encode_data(PROFILE, NUMBER, rqp_mca.MessageType.RELIABLE, body)
        return ask(data, rqp_mca.encode_data_confirm(PROFILE))

    ask(
        rqp_mca.encode_available_request(PROFILE, NUMBER),
        rqp_mca.encode_available_confirm(PROFILE, NUMBER),
    )
    return put


Take = Callable[[], bytes | None]


def from_tmq(line: Line, queue: str) -> Take:
    mqid = opened(line, queue)

    def take() -> bytes | None:
        answer = line.ask(tmq.encode_dnq(mqid), tmq.reply_bytes(DIALECT, tmq.Operation.DNQ))
        length = tmq.parse_length(answer)
        return None if length is None else line.read(length)

    return take


def from_ring(line: Line, queue: str) -> Take:
    name = queue.encode()
    request = ring.encode_request(ring.Pull(ring.echo_of(b"load", name), name, 1))

    def take() -> bytes | None:
        head = ring.parse_reply(line.ask(request, ring.HEAD_BYTES))
        said = line.read(head.size)
        return said if head.operation is ring.Operation.OK else None

    return take


def opened(line: Line, queue: str) -> bytes:
    mqid = tmq.parse_mqid(line.ask(tmq.encode_open(queue.encode()), tmq.MQID_BYTES))
    if mqid is None:
        raise OSError("the queue cannot be opened")
    return mqid


@dataclass
class Results:
    """Results, which the last line reports."""

    acked: Counter[str] = field(default_factory=Counter)  # by edge
    bodies: set[bytes] = field(default_factory=set)  # acknowledged
    seen: Counter[bytes] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)  # by edge
    breaks: Counter[str] = field(default_factory=Counter)
    # refused connections of reconnecting writers
    refused: Counter[str] = field(default_factory=Counter)
    longest_gap_s: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def has_put(self, name: str, body: bytes) -> None:
        with self.lock:
            self.bodies.add(body)
            self.acked[name] += 1

    def has_taken(self, edge: str, body: bytes) -> None:
        with self.lock:
            self.seen[body] += 1
            self.taken[edge] += 1

    def line(self) -> str:
        missing = self.bodies - self.seen.keys()
        return json.dumps(
            {
                "acked": self.acked,
                "seen": len(self.seen),
                "twice": sum(number > 1 for number in self.seen.values()),
                "missing": sorted(body.decode() for body in missing)[:10],
                "missing_count": len(missing),
                "taken": self.taken,
                "breaks": self.breaks,
                "refused": self.refused,
                "longest_gap_s": self.longest_gap_s,
            }
        )


def write(edge: str, place: tuple[str, int], queue: str, results: Results) -> None:
    number, last = 0, time.monotonic()
    line: Line | None = None
    while not os.path.exists(STOP):
        body = f"{edge} {number:08}".encode()
        try:
            if line is None:
                line = Line(*place)
                put = WAYS[edge](line, queue)
            done = put(body)
        except (OSError, ValueError):
            results.breaks[edge] += 1
            if line is not None:
                line.close()
            line, done = None, False
        now = time.monotonic()
        results.longest_gap_s[edge] = round(max(results.longest_gap_s.get(edge, 0.0), now - last), 2)
        if done:
            results.has_put(edge, body)
            number, last = number + 1, now
        time.sleep(PACE_S if done else AGAIN_S)


def write_anew(edge: str, place: tuple[str, int], queue: str, results: Results) -> None:
    """Put each message on a new connection, which is refused if a Service still names a pod that is gone."""
    number, name = 0, f"{edge} anew"
    while not os.path.exists(STOP):
        body = f"{name} {number:08}".encode()
        try:
            line = Line(*place)
            try:
                done = WAYS[edge](line, queue)(body)
            finally:
                line.close()
        except Refused:
            results.refused[edge] += 1
            done = False
        except (OSError, ValueError):
            results.breaks[name] += 1  # accepted by a pod that was about to end
            done = False
        if done:
            results.has_put(name, body)
            number += 1
        time.sleep(ANEW_S)


def read(
    edge: str, place: tuple[str, int], queue: str, results: Results, is_over: Callable[[], bool]
) -> None:
    line: Line | None = None
    while not is_over():
        try:
            if line is None:
                line = Line(*place)
                take = TAKES[edge](line, queue)
            body = take()
        except (OSError, ValueError):
            results.breaks["reader"] += 1
            if line is not None:
                line.close()
            line, body = None, None
        if body is None:
            time.sleep(AGAIN_S)
        else:
            results.has_taken(edge, body)


WAYS = {"tmq": by_tmq, "ring": by_ring, "pubsub": by_pubsub, "rqp": by_rqp}
TAKES = {"tmq": from_tmq, "ring": from_ring}


def main(queue: str, *edges: str) -> None:
    places = {}
    for edge in edges:
        name, _, where = edge.partition("=")
        host, _, port = where.partition(":")
        places[name] = (host, int(port))
    results = Results()
    end: list[float] = []

    def is_over() -> bool:
        with results.lock:
            return bool(end) and (time.monotonic() > end[0] or results.bodies <= results.seen.keys())

    writers = [
        threading.Thread(target=work, args=(name, place, queue, results))
        for name, place in places.items()
        for work in (write, write_anew)
    ]
    readers = [
        threading.Thread(target=read, args=(name, places[name], queue, results, is_over))
        for name in TAKES
        for _ in range(READERS)
    ]
    for thread in (*writers, *readers):
        thread.start()
    for thread in writers:
        thread.join()
    end.append(time.monotonic() + DRAIN_S)
    for thread in readers:
        thread.join()
    print(results.line(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Sends one message through every edge and receives it again; `helm test` runs this in a pod.

TEST_TMQ=tcp://host:port and so on say where the edges are. tls:// is for those that speak TLS: whose certificate it
is is not looked at, the message is. REDIS_URL names the store. Queues are made for it there, as not every edge lets its
clients make any, and removed whatever happens. An edge that nobody answers for is tried again until START_S seconds
have passed. Ends with 1 if anything failed, and says what.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from tempfile import TemporaryFile
from typing import BinaryIO, NoReturn
from urllib.parse import urlsplit

import services.cli.commands.get
import services.cli.commands.queues  # noqa: F401 - what children run is imported once
from protos import pubsub, ring, rqp_mca, tmq
from services.cli.main import run

PATIENCE_S = 20.0
AGAIN_S = 0.5
PREFIX = "TEST_"
BODY = f"one message {secrets.token_hex(8)}".encode()


class Failed(Exception):
    """What the edge did instead."""


class Line:
    """A connection to an edge. Every wait ends after PATIENCE_S."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        assert place.hostname
        assert place.port
        self._socket = socket.create_connection((place.hostname, place.port), PATIENCE_S)
        if place.scheme == "tls":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self._socket = context.wrap_socket(self._socket, server_hostname=place.hostname)
        self._stream: BinaryIO = self._socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise Failed(f"it closed the connection after {data!r}, {size} octets were due")
        return data

    def ask(self, request: bytes, size: int) -> bytes:
        self.send(request)
        return self.read(size)

    def line(self) -> bytes:
        line = self._stream.readline()
        if not line.endswith(b"\n"):
            raise Failed(f"it closed the connection after {line!r}")
        return line.rstrip(b"\r\n")

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


def through_tmq(line: Line, name: str) -> bytes:
    """OPEN, ENQ, DNQ (tmq.md 2)."""
    dialect, enq, dnq = tmq.Dialect.DOCUMENT, tmq.Operation.ENQ, tmq.Operation.DNQ
    with queue(name):
        mqid = tmq.parse_mqid(line.ask(tmq.encode_open(name.encode()), tmq.MQID_BYTES))
        if mqid is None:
            raise Failed("OPEN failed")
        answer = line.ask(tmq.encode_enq(mqid, BODY), tmq.reply_bytes(dialect, enq))
        if not tmq.parse_status(dialect, enq, answer):
            raise Failed("ENQ failed")
        length = tmq.parse_length(line.ask(tmq.encode_dnq(mqid), tmq.reply_bytes(dialect, dnq)))
        if length is None:
            raise Failed("DNQ found nothing")
        return line.read(length)


def through_pubsub(line: Line, name: str) -> bytes:
    """SUBSCRIBE and SEND; the OK to SEND and the MESSAGE come in any order (pubsub.md 2)."""
    line.send(pubsub.encode_subscribe(b"1", name.encode()))
    if (answer := line.line()) != b"OK":
        raise Failed(f"SUBSCRIBE was answered {answer!r}")
    line.send(pubsub.encode_send(name.encode(), BODY))
    answers = {line.line(), line.line()}
    messages = [answer for answer in answers if answer.startswith(b"MESSAGE 1 ")]
    if b"OK" not in answers or not messages:
        raise Failed(f"SEND was answered {answers!r}")
    return messages[0].removeprefix(b"MESSAGE 1 ")


def through_ring(line: Line, name: str) -> bytes:
    """push and pull at the client port (ring.md 5.2)."""
    at = name.encode()
    echo = ring.echo_of(b"helm test", at)

    def ask(request: ring.ClientRequest) -> bytes:
        head = ring.parse_reply(line.ask(ring.encode_request(request), ring.HEAD_BYTES))
        said = line.read(head.size)
        if head.operation is not ring.Operation.OK:
            raise Failed(f"{type(request).__name__} was answered {said!r}")
        return said

    with queue(name):
        ask(ring.Push(echo, at, [ring.encode_record(BODY)]))
        return ask(ring.Pull(echo, at, 1))


def through_rqp(line: Line, name: str) -> bytes:
    """AVAILABLE_REQUEST, and a RELIABLE message (rqp_mca.md 2): RQP only brings them, so it is taken from the store."""
    profile, number = rqp_mca.Profile.PACKED, secrets.randbits(32)
    reliable = rqp_mca.MessageType.RELIABLE
    steps = (
        (
            rqp_mca.encode_available_request(profile, number),
            rqp_mca.encode_available_confirm(profile, number),
        ),
        (rqp_mca.encode_data(profile, number, reliable, BODY), rqp_mca.encode_data_confirm(profile)),
    )
    with queue(name, "--bindings-rqp-mca-queue-id", str(number)):
        for request, confirm in steps:
            if (answer := line.ask(request, len(confirm))) != confirm:
                raise Failed(f"{request!r} was answered {answer!r}")
        return penstock("get", name)


@contextmanager
def queue(name: str, *options: str) -> Iterator[None]:
    penstock("queue", "create", name, *options)
    try:
        yield
    finally:
        penstock("queue", "delete", name, "--yes")


def penstock(*words: str) -> bytes:
    """Return what a command prints. A child of this process runs it: a new interpreter would take ten times as long."""
    with TemporaryFile() as out, TemporaryFile() as err:
        child = os.fork()
        if not child:
            be_a_command(words, out.fileno(), err.fileno())
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        if status:
            raise Failed(f"penstock {' '.join(words)}: {err.read().decode(errors='replace').strip()}")
        return out.read().removesuffix(b"\n")


def be_a_command(words: Sequence[str], out: int, err: int) -> NoReturn:
    """End with its status, at the latest after two PATIENCE_S."""
    status = 1
    try:
        signal.alarm(round(2 * PATIENCE_S))
        os.dup2(out, 1)
        os.dup2(err, 2)
        status = run(list(words))
        sys.stdout.flush()
    finally:
        os._exit(status)


WAYS: dict[str, Callable[[Line, str], bytes]] = {
    "TMQ": through_tmq,
    "PUBSUB": through_pubsub,
    "RING": through_ring,
    "RQP": through_rqp,
}


def connected(edge: str, url: str, until: float) -> Line:
    """Pods may be on their way up, and a Service without pods refuses. until: on the monotonic clock."""
    waits = False
    while True:
        try:
            return Line(url)
        except OSError as error:
            if time.monotonic() > until:
                raise
            if not waits:
                print(f"{edge.lower()} at {url}: not there yet: {error}", flush=True)
            waits = True
        time.sleep(AGAIN_S)


def exchange(edge: str, url: str, until: float) -> str:
    """'' or what went wrong."""
    if edge not in WAYS:
        return "this script does not know how it is spoken to: leave out its helmTest"
    try:
        with closing(connected(edge, url, until)) as line:
            body = WAYS[edge](line, f"helm-test-{secrets.token_hex(8)}")
    except (Failed, OSError, ValueError) as error:
        return str(error) or repr(error)
    return "" if body == BODY else f"{BODY!r} came back as {body!r}"


def main() -> int:
    places = {name.removeprefix(PREFIX): url for name, url in os.environ.items() if name.startswith(PREFIX)}
    failures, until = 0, time.monotonic() + float(os.environ.get("START_S", "0"))
    for edge, url in sorted(places.items()):
        wrong = exchange(edge, url, until)
        failures += bool(wrong)
        print(f"{edge.lower()} at {url}: {wrong or 'sent and received'}", flush=True)
    if not places:
        print(f"no edge to test: {PREFIX}<EDGE> names none")
    return 1 if failures or not places else 0


if __name__ == "__main__":
    sys.exit(main())

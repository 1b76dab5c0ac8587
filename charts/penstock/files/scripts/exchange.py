"""Sends one message through every edge and receives it again; `helm test` runs this in a pod.

TEST_TMQ=tcp://host:port and so on are the addresses of the edges; tls:// connects with TLS, without verifying the
certificate. REDIS_URL names the store. The script creates queues there, because not every edge lets clients create
them, and always deletes them. It retries unreachable edges for START_S seconds. It prints one line for each edge and
exits with 1 if any of them failed.
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
import services.cli.commands.queues  # noqa: F401 - once, for all children
from protos import pubsub, ring, rqp_mca, tmq
from services.cli.main import run

TIMEOUT_S = 20.0
RETRY_S = 0.5
PREFIX = "TEST_"
BODY = f"one message {secrets.token_hex(8)}".encode()


class Failed(Exception):
    """An edge did something else than expected."""


class Connection:
    """A connection to an edge; every operation times out after TIMEOUT_S."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        assert address.hostname
        assert address.port
        self._socket = socket.create_connection((address.hostname, address.port), TIMEOUT_S)
        if address.scheme == "tls":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self._socket = context.wrap_socket(self._socket, server_hostname=address.hostname)
        self._stream: BinaryIO = self._socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise Failed(f"it closed the connection after {data!r} of {size} octets")
        return data

    def ask(self, request: bytes, size: int) -> bytes:
        self.send(request)
        return self.read(size)

    def read_line(self) -> bytes:
        line = self._stream.readline()
        if not line.endswith(b"\n"):
            raise Failed(f"it closed the connection after {line!r}")
        return line.rstrip(b"\r\n")

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


def through_tmq(line: Connection, name: str) -> bytes:
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


def through_pubsub(line: Connection, name: str) -> bytes:
    """SUBSCRIBE and SEND; the OK to SEND and the MESSAGE come in any order (pubsub.md 2)."""
    line.send(pubsub.encode_subscribe(b"1", name.encode()))
    if (answer := line.read_line()) != b"OK":
        raise Failed(f"SUBSCRIBE returned {answer!r}")
    line.send(pubsub.encode_send(name.encode(), BODY))
    answers = {line.read_line(), line.read_line()}
    messages = [answer for answer in answers if answer.startswith(b"MESSAGE 1 ")]
    if b"OK" not in answers or not messages:
        raise Failed(f"SEND returned {answers!r}")
    return messages[0].removeprefix(b"MESSAGE 1 ")


def through_ring(line: Connection, name: str) -> bytes:
    """push and pull at the client port (ring.md 5.2)."""
    at = name.encode()
    echo = ring.echo_of(b"helm test", at)

    def ask(request: ring.ClientRequest) -> bytes:
        head = ring.parse_reply(line.ask(ring.encode_request(request), ring.HEAD_BYTES))
        reply = line.read(head.size)
        if head.operation is not ring.Operation.OK:
            raise Failed(f"{type(request).__name__} returned {reply!r}")
        return reply

    with queue(name):
        ask(ring.Push(echo, at, [ring.encode_record(BODY)]))
        return ask(ring.Pull(echo, at, 1))


def through_rqp(line: Connection, name: str) -> bytes:
    """AVAILABLE_REQUEST, and a RELIABLE message (rqp_mca.md 2); RQP cannot receive here, so `penstock get` does."""
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
                raise Failed(f"{request!r} returned {answer!r}")
        return penstock("get", name)


@contextmanager
def queue(name: str, *options: str) -> Iterator[None]:
    penstock("queue", "create", name, *options)
    try:
        yield
    finally:
        penstock("queue", "delete", name, "--yes")


def penstock(*words: str) -> bytes:
    """Return the output of a command, run in a forked child: starting an interpreter would take ten times as long."""
    with TemporaryFile() as out, TemporaryFile() as err:
        child = os.fork()
        if not child:
            run_and_exit(words, out.fileno(), err.fileno())
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        if status:
            raise Failed(f"penstock {' '.join(words)}: {err.read().decode(errors='replace').strip()}")
        return out.read().removesuffix(b"\n")


def run_and_exit(words: Sequence[str], out: int, err: int) -> NoReturn:
    """Run the command and end this process with its status, at the latest after 2 * TIMEOUT_S."""
    status = 1
    try:
        signal.alarm(round(2 * TIMEOUT_S))
        os.dup2(out, 1)
        os.dup2(err, 2)
        status = run(list(words))
        sys.stdout.flush()
    finally:
        os._exit(status)


EXCHANGES: dict[str, Callable[[Connection, str], bytes]] = {
    "TMQ": through_tmq,
    "PUBSUB": through_pubsub,
    "RING": through_ring,
    "RQP": through_rqp,
}


def connect(edge: str, url: str, until: float) -> Connection:
    """Connect, and retry while the pods start. until: deadline, on the monotonic clock."""
    is_reported = False
    while True:
        try:
            return Connection(url)
        except OSError as error:
            if time.monotonic() > until:
                raise
            if not is_reported:
                print(f"{edge.lower()} at {url}: not ready: {error}", flush=True)
            is_reported = True
        time.sleep(RETRY_S)


def exchange(edge: str, url: str, until: float) -> str:
    """Return the error, or "" if the message came back."""
    if edge not in EXCHANGES:
        return "this script does not support its protocol: remove its `helmTest`"
    try:
        with closing(connect(edge, url, until)) as line:
            body = EXCHANGES[edge](line, f"helm-test-{secrets.token_hex(8)}")
    except (Failed, OSError, ValueError) as error:
        return str(error) or repr(error)
    return "" if body == BODY else f"sent {BODY!r}, received {body!r}"


def main() -> int:
    addresses = {
        name.removeprefix(PREFIX): url for name, url in os.environ.items() if name.startswith(PREFIX)
    }
    failures, until = 0, time.monotonic() + float(os.environ.get("START_S", "0"))
    for edge, url in sorted(addresses.items()):
        error = exchange(edge, url, until)
        failures += bool(error)
        print(f"{edge.lower()} at {url}: {error or 'sent and received'}", flush=True)
    if not addresses:
        print(f"no edge to test: no {PREFIX}<EDGE> is set")
    return 1 if failures or not addresses else 0


if __name__ == "__main__":
    sys.exit(main())

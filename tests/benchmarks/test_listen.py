"""Test listeners: each message is counted, publishers wait for the slowest, and stamps carry the due time."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from benchmarks.generator import Audience, Bound, Generator, Load, LoadFailed
from benchmarks.peers.nats_core import encode_pub
from benchmarks.peers.peer import BODY, dial
from benchmarks.peers.text import encode_send
from tests.benchmarks.conftest import PIECE

COUNT, AHEAD = 60, 5
SEND, MESSAGE = encode_send("tag"), b"MESSAGE 17 " + BODY + b"\n"
PUB, MSG = encode_pub("tag"), b"MSG tag 1 100\r\n" + BODY + b"\r\n"

Serve = Callable[[bytes], tuple[bytes, bytes]]


def text(request: bytes) -> tuple[bytes, bytes]:
    return b"OK\n", b"MESSAGE 17 " + request.removeprefix(b"SEND tag ")


def nats(request: bytes) -> tuple[bytes, bytes]:
    return b"", MSG


class Broker:
    """One publisher and some listeners: `serve(request)` returns the publisher's answer and each listener's data."""

    def __init__(self, request: bytes, listeners: int, serve: Serve) -> None:
        self.received = b""
        self.most_ahead = 0
        self._size = len(request)
        self._serve = serve
        with socket.create_server(("127.0.0.1", 0)) as server:
            pairs = [(dial(server.getsockname()[1]), server.accept()[0]) for _ in range(listeners + 1)]
        self.publisher, self._far = pairs[0]
        self.listeners, self.far_listeners = [near for near, _ in pairs[1:]], [far for _, far in pairs[1:]]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        served = 0
        with self._far, contextlib.suppress(ConnectionError):
            while chunk := self._far.recv(65536):
                self.received += chunk
                whole = len(self.received) // self._size
                self.most_ahead = max(self.most_ahead, whole - served)
                for number in range(served, whole):
                    self._one(self.received[number * self._size : (number + 1) * self._size])
                served = whole

    def _one(self, request: bytes) -> None:
        answer, push = self._serve(request)
        for each in self.far_listeners:
            for at in range(0, len(push), PIECE):
                each.sendall(push[at : at + PIECE])
        self._far.sendall(answer)

    def close(self) -> None:
        self.publisher.close()
        self._thread.join(10)
        for each in [*self.listeners, *self.far_listeners]:
            each.close()


@contextlib.contextmanager
def brokered(request: bytes, serve: Serve, listeners: int = 3) -> Iterator[Broker]:
    broker = Broker(request, listeners, serve)
    try:
        yield broker
    finally:
        broker.close()


def text_load(broker: Broker, **options: int | bool) -> Load:
    audience = Audience(broker.listeners, "text-messages", fan=len(broker.listeners), **options)  # type: ignore[arg-type]
    return Load("line", [broker.publisher], [SEND], window=8, ok="OK", audience=audience)


def nats_load(broker: Broker) -> Load:
    audience = Audience(broker.listeners, "nats-messages", fan=len(broker.listeners), ahead=AHEAD)
    return Load("nats-publish", [broker.publisher], [PUB], window=1, audience=audience)


def test_every_message_line_is_counted(generator: Generator) -> None:
    with brokered(SEND, text) as broker:
        outcome = generator.run(text_load(broker), Bound(COUNT, 20))
    assert (outcome.messages, outcome.heard, outcome.refused) == (COUNT, 3 * COUNT, 0)
    assert 0 < outcome.seconds < 20
    assert broker.received == SEND * COUNT


def test_time_is_up_but_all_under_way_is_waited_for(generator: Generator) -> None:
    with brokered(SEND, text) as broker:
        outcome = generator.run(text_load(broker), Bound(10_000_000, 0.2))
    assert outcome.heard == 3 * outcome.messages == 3 * len(broker.received) / len(SEND)


def test_publishers_are_never_too_far_ahead_of_the_slowest(generator: Generator) -> None:
    with brokered(PUB, nats) as broker:
        outcome = generator.run(nats_load(broker), Bound(COUNT, 20))
    assert (outcome.messages, outcome.heard) == (COUNT, 3 * COUNT)
    assert 1 <= broker.most_ahead <= AHEAD


def test_pings_of_nats_are_answered_wherever_they_come(generator: Generator) -> None:
    with brokered(PUB, lambda _: (b"PING\r\n", b"PING\r\n" + MSG)) as broker:
        outcome = generator.run(nats_load(broker), Bound(1, 20))
        assert outcome.heard == 3
        assert [far.recv(100) for far in broker.far_listeners] == [b"PONG\r\n"] * 3


def test_stamps_carry_the_due_time(generator: Generator) -> None:
    """Check that stamps hold the due time, not the time of sending, so that stalls of the generator count too."""
    with brokered(SEND, text, listeners=1) as broker:
        outcome = generator.run(text_load(broker, stamped=True), Bound(COUNT, 20, rate=1000))
    stamps = [int(line.split()[2][:16], 16) for line in broker.received.splitlines()]
    steps = [later - earlier for earlier, later in itertools.pairwise(stamps)]
    assert {round(step / 1000) for step in steps} == {1000}  # us
    assert 0 < outcome.p50_us <= outcome.p99_us <= outcome.max_us < 20e6
    assert {len(line) for line in broker.received.splitlines()} == {len(SEND) - 1}


def test_parts_are_sent_in_turn(generator: Generator) -> None:
    parts = [encode_send(tag) for tag in ("one", "two", "six")]
    with brokered(parts[0], text, listeners=1) as broker:
        audience = Audience(broker.listeners, "text-messages", fan=1)
        load = Load(
            "line", [broker.publisher], [b"".join(parts)], window=4, ok="OK", parts=3, audience=audience
        )
        generator.run(load, Bound(8, 20))
    assert broker.received == b"".join(parts) * 2 + parts[0] + parts[1]


@pytest.mark.parametrize(
    ("push", "why"),
    [
        (MESSAGE * 2, "each message once"),
        (b"ERROR slow subscriber: 3 messages lost\n", "no MESSAGE"),
    ],
)
def test_repeated_message_and_error_fail_the_run(generator: Generator, push: bytes, why: str) -> None:
    with brokered(SEND, lambda _: (b"OK\n", push)) as broker, pytest.raises(LoadFailed, match=why):
        generator.run(text_load(broker), Bound(COUNT, 20))


def test_one_too_few_here_and_one_too_many_there(generator: Generator) -> None:
    with brokered(SEND, lambda _: (b"OK\n", b"")) as broker:
        for far, times in zip(broker.far_listeners, (0, 2, 1), strict=True):
            far.sendall(MESSAGE * times)
        with pytest.raises(LoadFailed, match="each message once"):
            generator.run(text_load(broker), Bound(1, 20))


def test_a_message_without_its_stamp(generator: Generator) -> None:
    short = b"MESSAGE 1 short\n"
    with (
        brokered(SEND, lambda _: (b"OK\n", short), listeners=1) as broker,
        pytest.raises(LoadFailed, match="stamp"),
    ):
        generator.run(text_load(broker, stamped=True), Bound(1, 20, rate=100))


@pytest.mark.parametrize("replies", [(b"-ERR 'no'\r\n", b""), (b"", b"-ERR 'Slow Consumer'\r\n")])
def test_nats_refuses(generator: Generator, replies: tuple[bytes, bytes]) -> None:
    with brokered(PUB, lambda _: replies) as broker, pytest.raises(LoadFailed, match="-ERR"):
        generator.run(nats_load(broker), Bound(COUNT, 20))


def test_a_message_that_is_lost_is_missed(built: Generator) -> None:
    """Check that a lost message fails the run, after five seconds; with one generator only, as this is slow."""
    with brokered(SEND, lambda _: (b"OK\n", b"")) as broker, pytest.raises(LoadFailed, match="message once"):
        built.run(text_load(broker), Bound(1, 0.1))


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"rule": "no-such-rule"}, "--listen"), ({"fan": 0}, "--fan")],
)
def test_options_that_make_no_sense(built: Generator, changes: dict[str, object], why: str) -> None:
    with brokered(SEND, text) as broker:
        audience = Audience(broker.listeners, **{"rule": "text-messages", "fan": 3, **changes})  # type: ignore[arg-type]
        with pytest.raises(LoadFailed, match=why):
            built.run(Load("line", [broker.publisher], [SEND], 1, audience=audience), Bound(1, 1))


def test_parts_must_be_of_one_length(built: Generator) -> None:
    with brokered(SEND, text) as broker, pytest.raises(LoadFailed, match="one length"):
        built.run(Load("line", [broker.publisher], [b"four"], 1, parts=3), Bound(1, 1))

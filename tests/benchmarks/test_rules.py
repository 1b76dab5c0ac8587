"""Test that every peer's replies are counted correctly, however TCP splits them, and answered as required."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from benchmarks.generator import Bound, Generator, Load, LoadFailed
from benchmarks.peers import amqp
from benchmarks.peers.peer import BODY
from benchmarks.peers.ring import PULL, encode_request
from benchmarks.peers.tmq import encode_dnq, encode_enq
from tests.benchmarks.conftest import CLOSE, Answer, Server

MQID = b"a" * 64
COUNT, WINDOW = 60, 4


def one_for_each(request: bytes, *replies: bytes) -> Callable[[], Answer]:
    """Answer each complete request with the next of `replies`, in a cycle."""

    def make() -> Answer:
        received, answered = b"", 0

        def answer(chunk: bytes) -> bytes:
            nonlocal received, answered
            received += chunk
            first, answered = answered, received.count(request)
            return b"".join(replies[i % len(replies)] for i in range(first, answered))

        return answer

    return make


def load(
    server: Server,
    rule: str,
    request: bytes,
    make: Callable[[], Answer],
    connections: int = 2,
    **options: object,
) -> Load:
    """Return a load. Alternating answers need one connection: the spread of a run over several is unpredictable."""
    sockets = [server.dial(make) for _ in range(connections)]
    return Load(rule, sockets, [request] * connections, WINDOW, **options)  # type: ignore[arg-type]


BOUND = Bound(COUNT, 20)
SIZED = struct.pack(">i", len(BODY)) + BODY


def test_tmq_statuses_are_counted(generator: Generator, server: Server) -> None:
    enq = encode_enq(MQID)
    outcome = generator.run(load(server, "tmq-put", enq, one_for_each(enq, b"\1")), BOUND)
    assert (outcome.messages, outcome.settled, outcome.refused) == (COUNT, COUNT, 0)
    assert 0 < outcome.p50_us <= outcome.p99_us <= outcome.max_us
    server.close()
    assert server.received == enq * COUNT


def test_tmq_refusals_are_not_counted_as_done(generator: Generator, server: Server) -> None:
    enq = encode_enq(MQID)
    outcome = generator.run(
        load(server, "tmq-put", enq, one_for_each(enq, b"\1", b"\0"), connections=1), BOUND
    )
    assert (outcome.messages, outcome.refused) == (COUNT / 2, COUNT / 2)


def test_tmq_bodies_are_counted_and_empty_replies_asked_again(generator: Generator, server: Server) -> None:
    dnq = encode_dnq(MQID)
    make = one_for_each(dnq, SIZED, b"\xff" * 4, SIZED)
    outcome = generator.run(load(server, "tmq-take", dnq, make, connections=1), BOUND)
    assert outcome.messages == COUNT
    assert outcome.empty >= COUNT / 2 - WINDOW


def test_tmq_puts_and_takes_in_one_request(generator: Generator, server: Server) -> None:
    request = encode_enq(MQID) * 2 + encode_dnq(MQID) * 2
    make = one_for_each(request, b"\1\1" + SIZED * 2)
    outcome = generator.run(load(server, "tmq-mixed", request, make, per_request=4), BOUND)
    assert outcome.messages == COUNT


def test_ring_replies(generator: Generator, server: Server) -> None:
    pull = encode_request(PULL, "q")
    ok, empty, full = (
        struct.pack(">I510xI", operation, len(message)) + message
        for operation, message in ((5, BODY), (4, b"empty"), (4, b"queue is full"))
    )
    make = one_for_each(pull, ok, empty, ok, full)
    outcome = generator.run(load(server, "ring", pull, make, connections=1), BOUND)
    assert outcome.messages + outcome.refused == COUNT
    assert outcome.refused >= COUNT / 3 - WINDOW
    assert outcome.empty >= COUNT / 3 - WINDOW


def test_lines(generator: Generator, server: Server) -> None:
    make = one_for_each(b"put\r\n", b"INSERTED 1\r\n", b"BURIED\r\n", b"INSERTED 23456\r\n")
    outcome = generator.run(load(server, "line", b"put\r\n", make, connections=1, ok="INSERTED"), BOUND)
    assert (outcome.messages, outcome.refused) == (COUNT * 2 / 3, COUNT / 3)


def test_resp(generator: Generator, server: Server) -> None:
    make = one_for_each(b"PING\r\n", b"$15\r\n1526919030474-0\r\n", b"+OK\r\n", b":1\r\n", b"-OOM\r\n")
    outcome = generator.run(load(server, "resp", b"PING\r\n", make, connections=1), BOUND)
    assert (outcome.messages, outcome.refused) == (COUNT * 3 / 4, COUNT / 4)


def test_beanstalkd_jobs_are_deleted(generator: Generator, server: Server) -> None:
    def make() -> Answer:
        job, unread = 0, b""

        def answer(chunk: bytes) -> bytes:
            nonlocal job, unread
            *lines, unread = (unread + chunk).split(b"\r\n")
            reply = b""
            for line in lines:
                if line == b"reserve":
                    job += 1
                    reply += b"RESERVED %d 9\r\nDELETED\r\n\r\n" % job  # a job that looks like a reply
                else:
                    reply += b"DELETED\r\n"
            return reply

        return answer

    outcome = generator.run(load(server, "beanstalkd-take", b"reserve\r\n", make), BOUND)
    assert outcome.messages == COUNT
    server.close()
    assert server.received.count(b"delete ") == COUNT
    assert server.received.count(b"delete 1\r\n") == 2  # one on each connection


def test_nats_acks_are_counted_and_pings_answered(generator: Generator, server: Server) -> None:
    publish = b"PUB q _INBOX.1 3\r\nabc\r\n"
    bad = b'MSG _INBOX.1 1 20\r\n{"error":{"code":1}}\r\n'
    good = b'MSG _INBOX.1 1 %d\r\n{"stream":"q", "seq": 1}\r\n' % len('{"stream":"q", "seq": 1}')
    make = one_for_each(publish, good, b"PING\r\n" + bad)
    outcome = generator.run(load(server, "nats", publish, make, connections=1), BOUND)
    assert (outcome.messages, outcome.refused) == (COUNT / 2, COUNT / 2)
    server.close()
    assert server.received.count(b"PONG\r\n") == COUNT / 2


def test_nats_messages_are_acknowledged_one_by_one(generator: Generator, server: Server) -> None:
    fetch = b"PUB $JS.API _INBOX.1 1\r\n2\r\n"
    message = b"MSG q 1 $JS.ACK.q.takers.1 100\r\n" + BODY + b"\r\n"
    make = one_for_each(fetch, message * 2)
    outcome = generator.run(load(server, "nats", fetch, make, per_request=2), BOUND)
    assert outcome.messages == COUNT
    server.close()
    assert server.received.count(b"PUB $JS.ACK.q.takers.1 4\r\n+ACK\r\n") == COUNT


def confirm(tag: int, *, multiple: bool) -> bytes:
    return amqp.encode_method(amqp.CHANNEL, (60, 80), struct.pack(">QB", tag, multiple))


def test_amqp_confirms_come_singly_in_any_order_and_together(generator: Generator, server: Server) -> None:
    publish = amqp.encode_publish("q", BODY)

    def make() -> Answer:
        received = confirmed = 0

        def answer(chunk: bytes) -> bytes:
            nonlocal received, confirmed
            received += len(chunk)
            whole = received // len(publish)
            if whole - confirmed < 2:  # the first of a pair, until the second one comes
                return b""
            first, confirmed = confirmed + 1, whole
            return confirm(first + 1, multiple=False) + confirm(whole, multiple=True)

        return answer

    bound = Bound(COUNT, 2.0)
    outcome = generator.run(load(server, "amqp-put", publish, make), bound)
    assert COUNT - 2 <= outcome.settled <= COUNT


def test_amqp_deliveries_are_acknowledged_when_whole(generator: Generator, server: Server) -> None:
    consume = amqp.encode_consume("q")
    ack = struct.pack(">BHIHH", 1, 1, 13, 60, 80)

    def deliver(tag: int) -> bytes:
        arguments = amqp.short("t") + struct.pack(">QB", tag, 0) + amqp.short("") + amqp.short("q")
        header = struct.pack(">HHQH", 60, 0, len(BODY), 0)
        body = amqp.encode_frame(amqp.BODY_FRAME, 1, BODY[:40]) + amqp.encode_frame(
            amqp.BODY_FRAME, 1, BODY[40:]
        )
        return amqp.encode_method(1, (60, 60), arguments) + amqp.encode_frame(amqp.HEADER, 1, header) + body

    def make() -> Answer:
        received, sent = b"", 0

        def answer(chunk: bytes) -> bytes:
            nonlocal received, sent
            received += chunk
            acked = max((tag for (tag,) in struct.iter_unpack(">Q", tags(received))), default=0)
            first, sent = sent, max(sent, acked + WINDOW)
            return b"".join(deliver(tag + 1) for tag in range(first, sent))

        return answer

    def tags(received: bytes) -> bytes:
        acks = received[len(consume) :]
        return b"".join(
            acks[i + 11 : i + 19] for i in range(0, len(acks) - 20, 21) if acks[i:].startswith(ack)
        )

    outcome = generator.run(load(server, "amqp-take", consume, make), BOUND)
    assert COUNT <= outcome.settled <= COUNT + 2 * WINDOW
    server.close()
    assert server.received.count(consume) == 2  # requested once on each connection


@pytest.mark.parametrize(
    ("rule", "reply"),
    [
        ("beanstalkd-take", b"NOT_FOUND\r\n"),
        ("nats", b"-ERR 'Authorization Violation'\r\n"),
        ("nats", b"HMSG _INBOX.1 1 30 30\r\n"),
        ("amqp-put", amqp.encode_method(1, (20, 40), b"\x01\x94" + amqp.short("NOT_FOUND") + bytes(4))),
        ("amqp-put", confirm(1, multiple=False)[:-1] + b"\0"),
        ("tmq-put", CLOSE),
        ("ring", struct.pack(">I510xI", 1, 0)),
    ],
)
def test_a_broken_reply_ends_the_run(generator: Generator, server: Server, rule: str, reply: bytes) -> None:
    with pytest.raises(LoadFailed):
        generator.run(load(server, rule, b"x\r\n", one_for_each(b"x\r\n", reply)), BOUND)

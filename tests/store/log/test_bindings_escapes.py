"""Bodies in the log: legal messages unchanged, others escaped (pubsub.md 5.3)."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from services.store import Queue, QueueSpec
from services.store.model import records
from services.store.redis.library import source
from tests.servers import Client
from tests.store.desk import Desk, encode
from tests.store.lane import Lane, begin
from tests.store.logbook import Logbook
from tests.store.pipeline.test_replays import Answers


@pytest.fixture
async def queue(book: Logbook) -> Queue:
    return await book.publishing("orders", "out")


async def appear(book: Logbook, desk: Desk, queue: Queue, *bodies: bytes) -> list[bytes]:
    """Return the messages in the log for these bodies."""
    await desk.put(queue, *bodies)
    return [line.removeprefix(b"out ") for line in await book.lines()]


LEGAL = [b"", b" ", b"plain", b"back\\slash \\n", b"\x7f", "zażółć 🐦 \u0085".encode()]
ESCAPED = [
    (b"a\nb", rb"a\nb"),
    (b"a\r\nb", rb"a\r\nb"),
    (b"\0\x01\x1f\t", rb"\x00\x01\x1f\x09"),
    (b"\xff", rb"\xff"),
    (b"a\\\n", rb"a\\\n"),
    (b"\\\x80", rb"\\\x80"),
    ("ż\n".encode(), rb"\xc5\xbc\n"),
]


async def test_legal_message_is_published_unchanged(book: Logbook, desk: Desk, queue: Queue) -> None:
    """Check that legal messages, including their backslashes, are published unchanged."""
    whole = b"".join([b"SEND out %b\n" % body for body in LEGAL])
    assert await appear(book, desk, queue, *LEGAL)
    assert [entry.block for entry in await book.entries()] == [whole]


async def test_illegal_octets_are_escaped(book: Logbook, desk: Desk, queue: Queue) -> None:
    shown = await appear(book, desk, queue, *(body for body, _ in ESCAPED))
    assert shown == [text for _, text in ESCAPED]


async def test_attributes_are_not_published(book: Logbook, desk: Desk, queue: Queue) -> None:
    made = [records.encode(body, {"k": "v" * 300, "n": body}) for body in (b"one", b"t\nwo", b"")]
    future, done = desk.expecting()
    desk.pipe.messages.publish(desk.source, queue, made, "t", done)
    assert await future == []
    assert await book.lines() == [b"out one", rb"out t\nwo", b"out "]


def escaped(body: bytes) -> bytes:
    """Escape a body by the rule."""
    try:
        body.decode("utf-8", "strict")
        legal = all(byte > 31 for byte in body)
    except UnicodeDecodeError:
        legal = False
    return body if legal else b"".join(map(shown_as, body))


def shown_as(byte: int) -> bytes:
    named = {0x5C: b"\\\\", 0x0A: b"\\n", 0x0D: b"\\r"}
    return named.get(byte) or (bytes([byte]) if 32 <= byte < 128 else b"\\x%02x" % byte)


LEADS = bytes.fromhex("c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")
FOLLOWERS = bytes.fromhex("61 7f 80 8f 90 9f a0 bf c2 e1")
ENDS = (b"", b"\x80", b"\xbf\x80", b"\x80a", b"\x80\x80\x80")
SEQUENCES = [bytes((lead, second)) + end for lead in LEADS for second in FOLLOWERS for end in ENDS]

almost_utf8 = st.lists(st.sampled_from(LEADS + FOLLOWERS), max_size=6).map(bytes)
bodies = st.one_of(st.binary(max_size=12), almost_utf8, st.text(max_size=6).map(str.encode))


def test_every_body_is_escaped_by_the_rule(client: Client) -> None:
    """Check escapes against the strict decoder, which rejects overlong forms, surrogates and values over U+10FFFF."""
    queue = Queue(
        "orders", "q1", "main", "test", QueueSpec(ack_level="fsync", bindings={"text": {"publish": "out"}})
    )
    begin(client, queue, library=source)
    lane = Lane(client, "one")

    @given(st.lists(bodies, min_size=1, max_size=60))
    @example(SEQUENCES)
    @example([b"inf", b"-0", b"1e3"])
    @settings(max_examples=50, suppress_health_check=list(HealthCheck))
    def check(some: list[bytes]) -> None:
        client.call("DEL", lane.keys.log[0])
        lane.messages.publish(lane.source, queue, encode(*some), "t", Answers())
        lane.send()
        entries = client.call("XRANGE", lane.keys.log[0], "-", "+")
        found = b"".join(fields[11] for _, fields in entries)
        assert found == b"".join([b"SEND out %b\n" % escaped(body) for body in some])

    check()

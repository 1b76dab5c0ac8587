"""Deliveries: cutting them, and sharing them among requests."""

from hypothesis import given
from hypothesis import strategies as st

from services.store import Delivery, Queue, QueueSpec
from services.store.model import records
from services.store.model.delivery import parse, share

QUEUE = Queue("orders", "q1", "main", "test", QueueSpec(ack_level="fsync"))
wants = st.lists(st.integers(1, 50), min_size=1, max_size=8)


@st.composite
def deliveries(draw: st.DrawFn) -> Delivery:
    count = draw(st.integers(1, 32))
    start = draw(st.integers(0, 32 - count))
    made = [records.encode(b"x" * draw(st.integers(0, 5)), {"n": i}) for i in range(count)]
    size = draw(st.integers(start + count, 32))
    return Delivery(QUEUE, b"7", b"1-5", size, start, count, b"".join(made), b"1700 tmq 10.0.0.1", b"3 1")


@given(deliveries(), st.data())
def test_cut_parts_add_up_to_the_delivery(delivery: Delivery, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, delivery.count))
    head, rest = delivery.cut(count)
    assert (head.count, rest.count) == (count, delivery.count - count)
    assert head.blob + rest.blob == delivery.blob
    assert head.mask | rest.mask == delivery.mask
    assert head.mask & rest.mask == 0
    assert head.body_bytes + rest.body_bytes == delivery.body_bytes
    assert head.start == delivery.start
    assert (head.lot, head.entry, head.size, head.history) == (rest.lot, rest.entry, rest.size, rest.history)


@given(deliveries())
def test_mask_has_one_bit_per_message(delivery: Delivery) -> None:
    assert delivery.mask.bit_count() == delivery.count == len(delivery.records())
    assert delivery.mask < 1 << 32


@given(st.lists(deliveries(), max_size=6), wants)
def test_deliveries_are_shared_in_the_order_of_requests(found: list[Delivery], wanted: list[int]) -> None:
    shares = share(found, wanted)
    assert len(shares) == len(wanted)
    total = sum(d.count for d in found)
    for want, mine in zip(wanted, shares, strict=True):
        assert sum(d.count for d in mine) == min(want, total)
        total -= sum(d.count for d in mine)
    given_out = b"".join(d.blob for mine in shares for d in mine)
    assert b"".join(d.blob for d in found).startswith(given_out)


def test_properties_of_a_delivery() -> None:
    again = Delivery(QUEUE, b"7", b"1-5", 1, 0, 1, records.encode(b"m"), b"1700 tmq 10.0.0.1", b"3 1")
    assert (again.enqueued_ms, again.origin, again.acquired, again.failed) == (1700, "tmq 10.0.0.1", 3, 1)
    first = Delivery(QUEUE, b"7", b"1-5", 1, 0, 1, records.encode(b"m"), b"1700 \xff", b"")
    assert (first.origin, first.acquired, first.failed) == ("\ufffd", 1, 0)


def test_reply_has_eight_values_per_delivery() -> None:
    reply = [
        1,
        b"7",
        b"1-5",
        2,
        0,
        1,
        b"\0\0\0\0",
        b"1 o",
        b"",
        b"8",
        b"1-6",
        1,
        0,
        1,
        b"\0\0\0\0",
        b"1 o",
        b"2 0",
    ]
    found = parse(QUEUE, reply)
    assert [(d.lot, d.entry, d.acquired) for d in found] == [(b"7", b"1-5", 1), (b"8", b"1-6", 2)]
    assert parse(QUEUE, [0]) == []

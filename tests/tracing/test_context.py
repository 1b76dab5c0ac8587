"""traceparent of W3C Trace Context, and the contexts of hops."""

from __future__ import annotations

import random

import pytest

from services.kit.tracing import Recorder
from services.store.model import records
from services.store.model.clock import Clock
from services.store.model.trace_context import KEY, Context, fresh, hop, of_record, parse, stamped
from services.store.model.traced_entries import pack_traced
from services.store.tracing.delivery_spans import DeliverySpans
from services.store.tracing.sampling import Sampling
from services.store.tracing.trace_propagation import TracePropagation
from tests.tracing.conftest import NewRecorder

GOOD = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACE, SPAN = 0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (GOOD, Context(TRACE, SPAN)),
        (GOOD[:-2] + "00", Context(TRACE, SPAN, False)),
        (GOOD[:-2] + "ff", Context(TRACE, SPAN)),  # other flags mean nothing here
        (GOOD[:-2] + "02", Context(TRACE, SPAN, False)),
        ("01" + GOOD[2:] + "-what-comes-later", Context(TRACE, SPAN)),  # of a version that is not known
        ("01" + GOOD[2:], Context(TRACE, SPAN)),
        (GOOD + "-more", None),
        ("ff" + GOOD[2:], None),
        ("01" + GOOD[2:] + "more", None),
        (GOOD.upper(), None),
        (f"00-{0:032x}-{SPAN:016x}-01", None),
        (f"00-{TRACE:032x}-{0:016x}-01", None),
        (GOOD[:-1], None),
        (GOOD + "\n", None),
        (GOOD.replace("4", "٤"), None),
        ("", None),
        (None, None),
        (7, None),
        (GOOD.encode(), None),
    ],
)
def test_parse_traceparent(header: object, found: Context | None) -> None:
    assert parse(header) == found


def test_written_context_is_read() -> None:
    for context in (fresh(), fresh().child(), Context(1, 1, False)):
        assert parse(context.header) == context


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\1",
        b"\1\0\0\0",
        b"\1\0\0\4\xff\xffab",
        records.encode(b"a", {"tag": "b"}),
        records.encode(b"a"),
    ],
)
def test_records_without_context(record: bytes) -> None:
    """Damaged records are detected elsewhere."""
    assert of_record(record) is None


def test_stamp_changes_nothing_else() -> None:
    context = fresh()
    before = records.encode(b"body", {"tag": "t", KEY: "nonsense", "n": 7})
    after = records.decode(stamped(before, context))
    assert after == records.Content(b"body", {"tag": "t", KEY: context.header, "n": 7})


def test_traced_record_begins_its_entry(chance: random.Random) -> None:
    """Runs of any length keep all records in order."""
    for _ in range(200):
        run = [records.encode(b"%d" % number) for number in range(chance.randint(1, 100))]
        for index in chance.sample(range(len(run)), chance.randint(0, len(run))):
            run[index] = stamped(run[index], fresh())
        entries = pack_traced(run)
        split = [records.split(blob, count) for count, _, blob in entries]
        assert [record for entry in split for record in entry] == run
        assert [size for _, size, _ in entries] == [sum(map(len, entry)) - 4 * len(entry) for entry in split]
        for entry in split:
            flags = [record[0] for record in entry]
            assert flags == sorted(flags, reverse=True), "a traced one stands behind one that is not"
            assert len(entry) <= records.PER_ENTRY


@pytest.mark.parametrize("ratio", [0.01, 0.2, 0.9])
async def test_each_message_has_the_same_probability(
    recorder: NewRecorder, chance: random.Random, ratio: float
) -> None:
    """In runs of any length. The bounds are five standard deviations."""
    random.seed(chance.random())
    sampling, number, found = Sampling(_with(recorder, ratio)), 0, 0
    while number < 50_000:
        run = chance.choice((1, 1, 2, 50, 1000))
        if not sampling.passes(run):
            chosen = list(sampling.chosen(run))
            assert chosen == sorted(set(chosen))
            assert set(chosen) <= set(range(run))
            found += len(chosen)
        number += run
    assert abs(found - number * ratio) < 5 * (number * ratio * (1 - ratio)) ** 0.5


async def test_ratios_0_and_1(recorder: NewRecorder) -> None:
    none, every = Sampling(_with(recorder, 0)), Sampling(_with(recorder, 1))
    assert all(none.passes(1000) for _ in range(1000))
    for run in (1, 7, 1000):
        assert not every.passes(run)
        assert list(every.chosen(run)) == list(range(run))


def _with(recorder: NewRecorder, ratio: float) -> Recorder:
    """Return a recorder that admits everything."""
    return recorder("test", ratio=ratio, most_per_s=100_000)


async def test_hop_contexts(recorder: NewRecorder) -> None:
    """Both ends agree, and a higher ratio samples everything that a lower one does."""
    hops = [hop("cast", b"machine", b"%d" % number) for number in range(20_000)]
    assert len({each.context.trace_id for each in hops}) == len(hops)
    assert hop("cast", b"a").context == hop("cast", b"a").context != hop("text", b"a").context
    low, high = ({each for each in hops if each.is_sampled(ratio)} for ratio in (0.05, 0.2))
    assert low < high
    assert 0.04 < len(low) / len(hops) < 0.06
    assert all(each.is_sampled(1) for each in hops)
    assert not any(each.is_sampled(0) for each in hops)
    for ratio, period in ((1.0, 1), (0.5, 2), (0.3, 4), (0.01, 128), (0.0, 0)):
        delivery_spans = DeliverySpans(traces := _with(recorder, ratio), Clock())
        hops_of_links = TracePropagation(traces, lambda _, found=delivery_spans: found)
        for offset in (0, 1, 1_000_000_007):
            numbers = hops_of_links.numbers(1, 1000, offset)
            assert list(numbers) == [n for n in range(1, 1001) if period and (n + offset) % period == 0]

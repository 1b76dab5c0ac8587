"""Runs equal the result of reading one request after the other, however similar these are."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from protos.runs import MAX_RUN, STRIDE, U32, encode_record, read_records

HEADS = st.sampled_from([b"", b"\x04", b"\x10\0\0\0\x70", b"\x04" + b"a" * 64, b"\1" + b"q" * 513])
LENGTHS = st.lists(st.integers(0, 3), max_size=40) | st.builds(
    lambda size, count: [size] * count,
    st.integers(0, 3),
    st.sampled_from([STRIDE, 50, MAX_RUN, MAX_RUN + 1]),
)


def one_by_one(data: bytes, start: int, head: bytes, max_bytes: int) -> tuple[list[bytes], int]:
    records: list[bytes] = []
    while len(records) < MAX_RUN and data[start : start + len(head)] == head:
        record = start + len(head)
        if len(data) < record + U32.size:
            break
        end = record + U32.size + U32.unpack_from(data, record)[0]
        if end - record - U32.size > max_bytes or end > len(data):
            break
        records.append(data[record:end])
        start = end
    return records, start


@given(
    head=HEADS,
    lengths=LENGTHS,
    start=st.integers(0, 3),
    cut=st.integers(0, 200),
    damage=st.none() | st.tuples(st.integers(0, 10_000), st.integers(0, 255)),
    max_bytes=st.integers(0, 3),
)
@example(head=b"", lengths=[0] * STRIDE, start=0, cut=0, damage=None, max_bytes=0)
@example(head=b"\x04", lengths=[2] * (MAX_RUN + 1), start=1, cut=1, damage=None, max_bytes=2)
def test_runs_equal_single_reads(
    head: bytes,
    lengths: list[int],
    start: int,
    cut: int,
    damage: tuple[int, int] | None,
    max_bytes: int,
) -> None:
    data = bytearray(start) + b"".join(head + encode_record(b"b" * size) for size in lengths)
    if damage is not None and data:
        data[damage[0] % len(data)] = damage[1]
    received = bytes(data[: max(len(data) - cut, 0)])
    start = min(start, len(received))
    assert read_records(received, start, head, max_bytes) == one_by_one(received, start, head, max_bytes)

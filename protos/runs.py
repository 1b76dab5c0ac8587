"""Runs of like requests, which are one event each in every protocol; single requests are runs of one.

A record is a body with its length, `u32 N, N bytes`, as TMQ and RQP/MCA send it: cut out of the input unchanged.
"""

import struct

U32 = struct.Struct(">I")  # a record's N
U32_BYTES = U32.size  # a global, as it is added for every record
MAX_RUN = 1_000  # requests in one event: what one call to the store may carry
STRIDE = 16  # like requests compared at once; a run of 200 then costs about 20 comparisons
MAX_ALIKE_HEAD = 128  # octets; longer heads are compared faster request by request than octet by octet


def encode_record(body: bytes) -> bytes:
    """Encode a body as `u32 N, N bytes`."""
    return U32.pack(len(body)) + body


def read_records(data: bytes, start: int, head: bytes, max_bytes: int) -> tuple[list[bytes], int]:
    """Return the records of a run and its end: from `start` on `head`, record, `head`, record and so on.

    Only whole records are taken, at most MAX_RUN; there may be none.

    Args:
        data: The input.
        start: Where the first head begins.
        head: What precedes each record; a request with another head ends the run.
        max_bytes: The largest N; a larger one ends the run.
    """
    records: list[bytes] = []
    head_bytes, data_bytes, size_of = len(head), len(data), U32.unpack_from
    is_short = head_bytes <= MAX_ALIKE_HEAD
    while len(records) < MAX_RUN:
        record = start + head_bytes
        body = record + U32_BYTES
        if body > data_bytes or not data.startswith(head, start):
            break
        (size,) = size_of(data, record)
        end = body + size
        if size > max_bytes or end > data_bytes:
            break
        if is_short and not records and (count := _count_alike(data, start, body, end)):
            stride = end - start
            ends = range(end, end + count * stride, stride)
            records = [data[each - stride + head_bytes : each] for each in ends]
            start += count * stride
            continue
        records.append(data[record:end])
        start = end
    return records, start


def _count_alike(data: bytes, start: int, body: int, end: int) -> int:
    """Count the requests in the input if all have the same head and N as the first; else return 0.

    Most runs are of messages of one length. Each octet is compared in all requests at once, those of N first: they
    differ first.
    """
    stride = end - start
    count = min((len(data) - start) // stride, MAX_RUN)
    if count < STRIDE:
        return 0
    stop = start + count * stride
    for place in range(body - 1, start - 1, -1):
        if data[place:stop:stride] != data[place : place + 1] * count:
            return 0
    return count


def count_run(data: bytes, start: int, request: bytes) -> int:
    """Count how often `request` is repeated at `start`, 1 to MAX_RUN."""
    count = 1
    for stride in (STRIDE, 1):
        block = request * stride
        while count + stride <= MAX_RUN and data.startswith(block, start + count * len(request)):
            count += stride
    return count

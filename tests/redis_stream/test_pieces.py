"""Test the size of batches: enough pages to be fast, few enough for the memory."""

from __future__ import annotations

from services.redis_stream.options import Options
from services.redis_stream.pieces import TOGETHER, TOGETHER_OCTETS, parts, read
from services.redis_stream.schema import COLUMNS, Kind
from services.redis_stream.stretches import Stream
from services.store.catalogue.reading import BEGINNING, StreamReader
from tests.redis_stream.streams import KEY, add, numbered
from tests.servers import Server

NAMES = [column.name for column in COLUMNS[Kind.ENTRIES]]
LARGE = 3 << 19  # octets


def batches(server: Server, rows: int) -> list[list[str]]:
    """Return the ids of each batch."""
    options = Options.parse({"url": server.url, "stream": KEY, "pageRows": str(rows)})
    with StreamReader(server.url) as reading:
        state = reading.state(KEY)
        assert state is not None
        (part,) = parts(reading, options, [Stream(Kind.ENTRIES, KEY, start=BEGINNING, end=state.last)])
    return [rows["id"].to_pylist() for rows in read(options, part, NAMES)]


def test_small_entries_are_together_by_pages(server: Server) -> None:
    expected = add(server, numbered(50 * TOGETHER + 7))
    found = batches(server, 20)
    assert [one for each in found for one in each] == expected
    assert list(map(len, found)) == [20 * TOGETHER, 20 * TOGETHER, 10 * TOGETHER + 7]


def test_large_entries_are_together_by_their_octets(server: Server) -> None:
    """Check the limit in octets: 16 pages of one large entry each would be 24 MiB."""
    expected = add(server, [(f"{number}-0", LARGE) for number in range(1, 41)])
    found = batches(server, 1)
    assert [one for each in found for one in each] == expected
    full = TOGETHER_OCTETS // LARGE + 1
    assert {len(each) for each in found[:-1]} <= {full - 1, full}

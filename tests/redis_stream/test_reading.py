"""Read streams of real servers: what exists, and each entry once with any page size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.store.catalogue.reading import BEGINNING, PAGE_OCTETS, DeadStream, StreamReader
from services.store.model import keys
from services.store.model.errors import NotInitialised
from tests.redis_stream.reads import everything, ids
from tests.redis_stream.streams import KEY, add, numbered, with_desk
from tests.servers import PROGRAMS, Server
from tests.store.desk import Desk


@pytest.fixture(scope="module", params=list(PROGRAMS))
def each_kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(request.param, tmp_path_factory.mktemp(request.param)).start()
    yield server
    server.end()


@pytest.fixture
def either(each_kind: Server) -> Server:
    """An empty server of each kind."""
    each_kind.clear()
    return each_kind


def test_what_a_store_has(either: Server) -> None:
    async def make(desk: Desk) -> None:
        for name in ("b", "a", "o\udcff"):
            await desk.queue(name)
        await desk.queue("far", domain="other")

    with StreamReader(either.url) as reading, pytest.raises(NotInitialised):
        reading.dead_streams()
    with_desk(either, make)
    with StreamReader(either.url) as reading:
        assert set(reading.domains()) >= {"main", "other"}
        found, spoilt = reading.dead_streams()
        assert spoilt == []
        assert [(each.domain, each.queue) for each in found] == [
            ("main", "a"),
            ("main", "b"),
            ("main", "o\udcff"),
            ("other", "far"),
        ]
        first = found[0]
        assert first == DeadStream("main", "a", first.qid, f"ps:{{main}}:{first.qid}:d")
        assert abs(reading.now_ms() - int(either.call("TIME")[0]) * 1000) < 60_000
        assert reading.state("nothing") is None
        with pytest.raises(ValueError, match="is not a stream"):
            reading.state(keys.RegistryKeys().domains)


# pages


@pytest.mark.parametrize("rows", [1, 7, 128, 129, 5000])
def test_each_entry_once_whatever_the_pages(either: Server, rows: int) -> None:
    expected = add(either, numbered(1025))
    assert everything(either.url, rows=rows) == expected
    with StreamReader(either.url) as reading:
        assert ids(reading.pages(KEY, "5-0", "1000-0", rows)) == expected[5:1000]
        assert ids(reading.pages(KEY, "5-0", "5-0", rows)) == []
        assert ids(reading.pages("nothing", BEGINNING, "9-0", rows)) == []
        assert reading.nth_behind(KEY, "5-0", "1000-0", 7) == (7, "12-0")
        assert reading.nth_behind(KEY, "5-0", "10-0", 7) == (5, "10-0")
        assert reading.nth_behind(KEY, "10-0", "10-0", 7) == (0, "10-0")


def test_a_question_between_pages_gets_its_own_answer(server: Server) -> None:
    """Check a request while the next page is already on its way."""
    expected = add(server, numbered(1000))
    with StreamReader(server.url) as reading:
        found = []
        for page in reading.pages(KEY, BEGINNING, "1000-0", 100):
            found += ids(iter([page]))
            assert reading.first_from(KEY, "7-0") == "7-0"
            assert reading.ids_before(KEY, "7-0", 2) == ["7-0", "6-0"]
        assert found == expected


def test_pages_shrink_where_entries_are_large(server: Server) -> None:
    sizes = [100] * 300 + [1 << 19] * 120 + [100] * 300
    add(server, [(f"{at + 1}-0", size) for at, size in enumerate(sizes)])
    with StreamReader(server.url) as reading:
        pages = list(reading.pages(KEY, BEGINNING, "720-0", 200))
    assert [entry[0] for page in pages for entry in page.entries] == [b"%d-0" % n for n in range(1, 721)]
    within = [len(page.entries) for page in pages if page.entries and len(page.entries[0][1][1]) > 100]
    assert max(within[1:]) <= PAGE_OCTETS >> 19 <= 2


def test_a_reply_that_would_be_too_large_is_not_taken(server: Server) -> None:
    """Check large entries after small ones: the reply is abandoned, and fewer are requested."""
    with server.configured(maxmemory="0"):
        add(server, [(f"{at + 1}-0", 100 if at < 1200 else 1 << 20) for at in range(1300)])
        with StreamReader(server.url) as reading:
            most = max(
                sum(len(fields[1]) for _, fields in page.entries)
                for page in reading.pages(KEY, BEGINNING, "1300-0", 1000)
            )
        assert most <= 64 << 20
        assert len(everything(server.url, rows=1000)) == 1300
        add(server, [("2000-0", 80 << 20)])  # a single entry may have any size
        assert everything(server.url, rows=1000)[-1] == "2000-0"
        server.call("DEL", KEY)


def test_a_server_that_closes_for_the_size_of_a_reply(server: Server) -> None:
    add(server, [(f"{at + 1}-0", 1 << 18) for at in range(128)])
    with server.configured(client_output_buffer_limit="normal 16777216 0 0"):
        assert len(everything(server.url, rows=1000)) == 128

"""Scanning dead letters by filters in steps, with concurrent changes, compared with a plain list."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.store import DeadLetter, DeadLetters, Filter
from services.store.deadletters.dead_letters import SCAN_LIMIT
from services.store.model import records
from services.store.redis.link import Link
from tests.servers import Server
from tests.store.desk import Desk

REASONS = ("expired", "refused", "injured")
ORIGINS = ("tmq 10.0.0.1", "ring ünder", "body", "%a", "mca \N{REPLACEMENT CHARACTER}", "")
PATTERNS = (None, re.compile(rb"1"), re.compile(rb"^$"), re.compile(rb"\x00\xff"))
BODIES = st.one_of(st.binary(max_size=20), st.sampled_from((b"", b"\x00\xff1", b"1" * 40_000)))
Buried = tuple[str, str, bytes]  # reason, origin, body

buried = st.tuples(st.sampled_from(REASONS), st.sampled_from(ORIGINS), BODIES)
parts = st.sampled_from(
    ("", "1", "ü", "%", "body", "\N{REPLACEMENT CHARACTER}", "\udcff", "tmq 10.0.0.1 and more")
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A filter with times of dead letters: `until` and `age` are indices, None = no condition."""

    reasons: tuple[str, ...]
    origin: str
    until: int | None
    age: int | None
    pattern: int
    count: int  # of a step
    octets: int
    search_s: float

    def filter(self, letters: list[DeadLetter], now_ms: int) -> Filter:
        died = [letter.died_ms for letter in letters] or [now_ms]
        until = died[self.until % len(died)] if self.until is not None else 0
        age = now_ms - died[self.age % len(died)] if self.age is not None else 0
        return Filter(self.reasons, self.origin, max(age, 0), PATTERNS[self.pattern], (), until)


asked = st.builds(
    Asked,
    st.lists(st.sampled_from((*REASONS, "another")), max_size=2).map(tuple),
    parts,
    st.none() | st.integers(0, 50),
    st.none() | st.integers(0, 50),
    st.integers(0, len(PATTERNS) - 1),
    st.sampled_from((1, 2, 7, 200)),
    st.sampled_from((-1, 0, 3)),
    st.sampled_from((0.0, 1e-6, 60.0)),
)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def meant(letters: list[DeadLetter], wanted: Filter, now_ms: int) -> list[str]:
    """Return the expected matches by the plain model."""
    return [
        letter.id
        for letter in letters
        if (not wanted.reasons or letter.reason in wanted.reasons)
        and wanted.origin in letter.origin
        and letter.died_ms <= now_ms - wanted.older_than_ms
        and (not wanted.died_until_ms or letter.died_ms <= wanted.died_until_ms)
        and (wanted.body is None or wanted.body.search(letter.body))
    ]


async def looked_through(
    letters: DeadLetters, wanted: Filter, now_ms: int, asked: Asked, between: list[list[str]]
) -> list[DeadLetter]:
    """Scan in steps; before the second one the first ids of `between` are purged, and so on."""
    found: list[DeadLetter] = []
    after, is_last = "", False
    while not is_last:
        page = await letters.scan(after, wanted, now_ms, asked.count, asked.octets, asked.search_s)
        assert len(page.letters) <= asked.count
        assert not page.letters or page.last >= page.letters[-1].id
        found += page.letters
        after, is_last = page.last or after, page.is_last
        if between and (going := between.pop(0)):
            await letters.purge(going)
    return found


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(buried, max_size=40), st.lists(asked, min_size=1, max_size=4), st.data())
def test_each_match_is_found_once(
    server: Server,
    loop: asyncio.AbstractEventLoop,
    dead: list[Buried],
    asked: list[Asked],
    data: st.DataObject,
) -> None:
    async def held_to_the_model() -> None:
        async with Desk(server) as desk:
            queue = await desk.queue(secrets.token_hex(8))
            for reason, origin, body in dead:
                await desk.bury(queue, records.encode(body), reason, origin=origin)
            letters = desk.dead(queue)
            everything = [letter async for letter in letters.matching()]
            assert [(each.reason, each.origin, each.body) for each in everything] == dead
            for each in asked:
                now_ms = everything[-1].died_ms + 1 if everything else 1
                wanted = each.filter(everything, now_ms)
                expected = meant(everything, wanted, now_ms)
                found = await looked_through(letters, wanted, now_ms, each, [])
                assert [letter.id for letter in found] == expected
            await _while_some_go(letters, everything, asked[0], data)

    loop.run_until_complete(held_to_the_model())


async def _while_some_go(
    letters: DeadLetters, everything: list[DeadLetter], asked: Asked, data: st.DataObject
) -> None:
    ids = [letter.id for letter in everything]
    going = data.draw(st.lists(st.lists(st.sampled_from(ids), max_size=5), max_size=5)) if ids else []
    gone = {each for some in going for each in some}
    now_ms = everything[-1].died_ms + 1 if everything else 1
    wanted = asked.filter(everything, now_ms)
    expected = meant(everything, wanted, now_ms)
    found = [letter.id for letter in await looked_through(letters, wanted, now_ms, asked, going)]
    assert len(set(found)) == len(found)
    assert set(expected) - gone <= set(found) <= set(expected)


async def test_step_without_matches_is_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a step without matches ends at the bound, returns its position, and sends no dead letters."""
    queue = await desk.queue()
    number = 2 * SCAN_LIMIT + 1
    await desk.put(queue, *(b"%d" % each for each in range(number)))
    await desk.reject(await desk.take(queue, number))
    answers: list[int] = []
    function = Link.function

    async def seen(link: Link, name: str, *args: object, **named: int) -> object:
        answer = await function(link, name, *args, **named)  # type: ignore[arg-type]
        if name == "dead":
            answers.append(len(answer))
        return answer

    monkeypatch.setattr(Link, "function", seen)
    letters = desk.dead(queue)
    now_ms = await desk.domain.link.now_ms()
    wanted = Filter(reasons=("unused reason",))
    after, ends = "", []
    for _ in range(3):
        page = await letters.scan(after, wanted, now_ms)
        assert page.letters == []
        ends.append(page.is_last)
        after = page.last
    assert ends == [False, False, True]
    assert answers == [2, 2, 2]
    assert [letter async for letter in letters.matching(wanted)] == []
    newest = [letter async for letter in letters.matching(replace(wanted, reasons=()))][-1]
    assert newest.id == after


async def test_callers_without_filters_get_the_older_reply(desk: Desk) -> None:
    """Check that older programs, which run during a rollout, get the older reply."""
    queue = await desk.queue()
    await desk.bury(queue, records.encode(b"body"), "refused")
    more, identifier, size, fields = await desk.domain.link.function(
        "dead", [queue.keys[6]], "-", "+", 200, 2
    )
    assert (more, size) == (0, 4)
    assert identifier == (await anext(desk.dead(queue).matching())).id.encode()
    assert fields[2 * fields[::2].index(b"body") + 1] == b"bo"


async def test_nothing_follows_the_highest_id(desk: Desk) -> None:
    """Check that the highest id, which Redis refuses as an exclusive bound, is accepted in a cursor."""
    queue = await desk.queue()
    await desk.put(queue, b"x")
    await desk.reject(await desk.take(queue, 1))
    most = f"{(1 << 64) - 1}"
    page = await desk.dead(queue).scan(f"{most}-{most}", Filter(), 0)
    assert (page.letters, page.is_last) == ([], True)
    assert (await desk.dead(queue).scan(f"0-{most}", Filter(), 0)).letters


async def test_slow_search_ends_between_two_bodies(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"a1", b"b", b"c1")
    await desk.reject(await desk.take(queue, 3))
    letters = desk.dead(queue)
    now_ms = await desk.domain.link.now_ms()
    after, seen = "", []
    for _ in range(3):
        page = await letters.scan(after, Filter(body=re.compile(rb"1")), now_ms, search_s=0)
        seen.append(([letter.body for letter in page.letters], page.is_last))
        after = page.last
    assert seen == [([b"a1"], False), ([], False), ([b"c1"], True)]

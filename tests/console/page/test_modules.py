"""Test modules of the page in the browser."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest
import yaml
from playwright.async_api import Page

from tests.console.page.browsing import DASH, call
from tests.stores import chance

pytestmark = pytest.mark.asyncio(loop_scope="session")
__all__ = ["chance"]
STREAM = (
    'retry: 2000\nevent: hello\ndata: {"a": "ü"}\n\n: still here\n\nevent: queues\ndata: [1,\ndata: 2]\n\n'
)
TOLD = [["hello", {"a": "ü"}], ["queues", [1, 2]]]


async def test_event_parser_accepts_any_chunking(ready: Page) -> None:
    cuts = f"Array.from({{length: {len(STREAM)}}}, (_, i) => {{ const feed = m.eventParser(); " + (
        "return JSON.stringify([...feed(given.slice(0, i)), ...feed(given.slice(i))]); })"
    )
    found = await call(ready, "live.js", cuts, STREAM)
    assert {json.dumps(json.loads(each)) for each in found} == {json.dumps(TOLD)}
    crlf = "m.eventParser()(given.replaceAll('\\n', '\\r\\n'))"
    assert await call(ready, "live.js", crlf, STREAM) == TOLD


NAMES = {  # a name in JSON → in an address
    "orders": "orders",
    "a/b c": "a%2Fb%20c",
    "100%": "100%25",
    "gr\u00fcn\u2028\U0001f600": "gr%C3%BCn%E2%80%A8%F0%9F%98%80",
    "\udcff": "%FF",
    "a\udce2\udc82b\u20ac": "a%E2%82b%E2%82%AC",
}


async def test_names_of_any_octets_are_encoded_in_addresses(ready: Page) -> None:
    for name, part in NAMES.items():
        given = json.dumps(name)  # only JSON brings a lone surrogate into the page
        assert await call(ready, "names.js", "m.encodeName(JSON.parse(given))", given) == part
        assert await call(ready, "names.js", "m.decodeName(given[0]) === JSON.parse(given[1])", [part, given])


async def test_names_that_differ_in_white_space_look_different(ready: Page) -> None:
    for name, shown in (
        ("a b", "a b"),
        ("a  b", "a\u2423\u2423b"),
        (" a ", "\u2423a\u2423"),
        ("a\u00a0b", "a\u27e8A0\u27e9b"),
        ("a\u200bb\n", "a\u27e8200B\u27e9b\u27e8A\u27e9"),
    ):
        link = "m.html(['<a>', '</a>'], given).props.children"  # as templates of views draw it
        assert await call(ready, "html.js", link, name) == shown
    assert not await call(ready, "names.js", "m.isTypeable('a\u00a0b')")


async def test_malformed_escapes_in_addresses_are_kept(ready: Page) -> None:
    assert await call(ready, "names.js", "m.decodeName('50%')") == "50%"
    assert await call(ready, "names.js", "m.decodeName('%zz%41')") == "%zzA"
    assert await call(ready, "names.js", "m.encodeName('a\\ud800')") == "a%EF%BF%BD"


async def test_encoding_of_names_round_trips(ready: Page, chance: random.Random) -> None:
    names = [
        chance.choice([chance.randbytes(n), "ä€😀".encode()[n % 9 :]]).decode("utf-8", "surrogateescape")
        for n in range(1, 200)
    ]
    same = "JSON.parse(given).every((name) => m.decodeName(m.encodeName(name)) === name)"
    assert await call(ready, "names.js", same, json.dumps(names))


async def test_best_view_of_a_body(ready: Page) -> None:
    for octets, kind in [
        (b"", "text"),
        (b"plain", "text"),
        (b"21.5", "text"),
        (b'{"a": 1}', "json"),
        (b"[1, 2", "text"),
        ("café\n".encode(), "text"),
        (b"\xff\xfe", "hex"),
        (b"a\0b", "hex"),
    ]:
        given = base64.b64encode(octets).decode()
        assert await call(ready, "bodies.js", "m.kind(m.decode(given))", given) == kind
        assert await call(ready, "bodies.js", "m.encode(m.decode(given))", given) == given


async def test_incomplete_last_character_is_left_out(ready: Page) -> None:
    given = base64.b64encode("日本".encode()[:-1]).decode()
    assert await call(ready, "bodies.js", "m.utf8(m.decode(given), true)", given) == "日"
    assert await call(ready, "bodies.js", "m.utf8(m.decode(given))", given) is None


async def test_hex_rows_contain_every_octet(ready: Page) -> None:
    given = base64.b64encode(bytes(range(256)) + b"end").decode()
    rows = await call(ready, "bodies.js", "m.hexRows(m.decode(given))", given)
    assert bytes.fromhex("".join(row[1] for row in rows)) == bytes(range(256)) + b"end"
    assert rows[-1][0] == "00000100"
    assert rows[-1][2] == "end"
    assert {len(row[1]) for row in rows[:-1]} == {len(rows[0][1])}


async def test_indented_json_is_the_same_json(ready: Page, chance: random.Random) -> None:
    texts = [json.dumps(document(chance), indent=chance.choice((None, 1))) for _ in range(300)]
    laid = await call(
        ready, "bodies.js", "given.map(t => m.indentJson(t).map(([, part]) => part).join(''))", texts
    )
    assert [json.loads(each) for each in laid] == [json.loads(each) for each in texts]
    assert laid == [json.dumps(json.loads(each), indent=2, ensure_ascii="\\u" in each) for each in texts]


async def test_yaml_of_a_document_is_the_same_document(ready: Page, chance: random.Random) -> None:
    documents = [{"spec": document(chance)} for _ in range(300)]
    written = await call(
        ready, "components/document.js", "given.map(each => m.yaml(each).trimStart())", documents
    )
    assert [yaml.safe_load(each) for each in written] == documents


# Words that YAML could read as another type
WORDS = [
    *(
        "a",
        "yes",
        "1d",
        "10.0.0.7",
        "1.5",
        "#x",
        "é",
        "null",
        "*",
        "0x1f",
        "1_000",
        "12:30",
        "2026-11-25",
        "{",
    ),
    *(
        "mq.example.org:11311",
        "[1]",
        "plant.*",
        "~",
        "<b>",
        "!tag",
        "&a",
        "%",
        "@",
        "a:",
        "007",
        "1e3",
        "on",
        "=",
    ),
    *("<<", "?", "-", "---", "'", "a: b", "- x", "x #y", "", " ", '"', "a\nb", "key: ", "tab\there"),
]


def document(chance: random.Random, depth: int = 3) -> Any:
    """Return a random JSON value."""
    kind = chance.randrange(6 if depth else 4)
    if kind == 4:
        return [document(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 5:
        return {chance.choice(WORDS): document(chance, depth - 1) for _ in range(chance.randrange(4))}
    return [chance.choice(WORDS), chance.randrange(1000), chance.random() < 0.5, None][kind]


async def test_formats_of_numbers(ready: Page) -> None:
    for call_of, expected in [
        ("m.count(1234567)", "1,234,567"),
        ("m.count(null)", DASH),
        ("m.rate(0.25)", "0.3"),
        ("m.bytes(1536)", "1.5 KiB"),
        ("m.bytes(512 << 20)", "512 MiB"),
        ("m.age(400)", "0.4 s"),
        ("m.age(3_723_000)", "1 h 2 min"),
        ("m.age(90_000_000)", "1 d 1 h"),
        ("m.latency(0.4213)", "0.42 ms"),
        ("m.latency(1200)", "1.2 s"),
        ("m.several(1, 'queue')", "1 queue"),
        ("m.several(0, 'entry', 'entries')", "0 entries"),
    ]:
        assert await call(ready, "formats.js", call_of) == expected


async def test_no_consumers_is_reported_by_the_console_only(ready: Page) -> None:
    """Check that only the console reports a queue without consumers: a rate of 0 is not enough."""
    seen = {"name": "a", "dead": 0, "ready": 9, "oldestAgeMs": 90_000, "rates": {"out": 0}, "paused": False}
    text = "given.map(queue => m.issuesOf(queue).map(({ text }) => text))"
    given = [{**seen, "nobodyTakes": is_idle} for is_idle in (False, True)]
    assert await call(ready, "components/issues.js", text, given) == [
        [], ["No consumers: oldest message 1 min 30 s"],
    ]  # fmt: skip


async def test_routes_round_trip(ready: Page) -> None:
    given = [["queues", "a/b c%&#?"], {"filter": "x&y=z", "sort": "-ready"}]
    found = await call(ready, "routes.js", "m.parse(m.href(...given))", given)
    assert found == {"parts": given[0], "query": given[1]}


async def test_ring_nodes_do_not_overlap(ready: Page) -> None:
    for number in [2, 3, 12, 20, 24, 100]:
        given = [f"127.0.0.1:{9000 + each}" for each in range(number)]
        apart = "given.map((name, i) => [at.get(name), at.get(given[(i + 1) % given.length])])"
        distance = f"((at) => {apart}.map(([a, b]) => Math.hypot(a.x - b.x, a.y - b.y)))(m.places(given))"
        assert min(await call(ready, "components/ringdiagram.js", distance, given)) > 40, (
            "each has a radius of 15"
        )

"""Test that the measures of text pub/sub count correctly, on real edges and stores with tiny counts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from benchmarks.generator import Bound, LoadFailed
from benchmarks.measures import delivery, fanout, subscriptions, throughput
from benchmarks.measures.bench import Bench
from benchmarks.measures.subscriptions import HOT, pattern, tag
from benchmarks.peers.peer import BODY, Shape
from benchmarks.peers.redis import Store
from benchmarks.peers.text import Text, converse, subscribe
from benchmarks.process import NotRun, find_program, workshop
from benchmarks.results import Finding
from benchmarks.tools import NATS
from tests.benchmarks.conftest import TINY


def has_nats() -> bool:
    return NATS.program.exists() or find_program("nats-server") is not None


def check_all_measured(found: list[Finding]) -> None:
    assert [(finding.what, finding.note) for finding in found if not finding.values] == []
    assert all(value >= 0 for finding in found for value in finding.values)


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Text]:
    """Yield a text edge for the tests that share one."""
    with workshop(tmp_path_factory.mktemp("text")) as place:
        made = Text(place, Store(place))
        made.start()
        yield made


def test_throughput_of_send(bench: Bench, edge: Text) -> None:
    bench.peers = {"text": edge}
    throughput.measure(bench)
    (text,) = bench.results.peers
    assert text.not_run == ""
    assert set(text.cells) == {"put 10 x 200", "put 50 x 1"}


def test_every_send_is_delivered_to_a_subscriber(bench: Bench, edge: Text) -> None:
    with edge.connect() as sock:
        subscribe(sock, ["q", "q*"])
        outcome = edge.put(bench.generator, Shape(2, 5), Bound(20, 20), "q")
        expected = b"".join(b"MESSAGE %d %s\n" % (i, BODY) for i in (1, 2)) * outcome.settled
        got = b""
        while len(got) < len(expected):
            got += sock.recv(65536)
    assert got == expected
    with edge.connect() as sock, pytest.raises(OSError, match="ERROR"):
        converse(sock, ["NONSENSE"])


def test_fanout(bench: Bench) -> None:
    """Check that all deliveries are counted, and that the verdict is "not run" without the peer."""
    found = fanout.measure(bench)
    if not has_nats():
        assert {finding.verdict for finding in found} == {"not run"}
        return
    check_all_measured(found)
    assert [str(finding.target) for finding in found if finding.target] == [">= 0.5", ">= 0.25"]
    assert {len(finding.values) for finding in found} == {TINY.rounds}


def test_fanout_without_nats(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise NotRun("no NATS here")

    monkeypatch.setattr("benchmarks.peers.nats_core.find_nats_server", nowhere)
    found = fanout.measure(bench)
    assert [(finding.verdict, finding.note) for finding in found] == [("not run", "no NATS here")] * 2


def test_each_tag_is_matched_by_one_subscription() -> None:
    patterns = [pattern(number) for number in range(1000)]
    prefixes = {each[:-1] for each in patterns if each.endswith("*")}
    assert len(prefixes) == 500
    for number in range(1000):
        name = tag(number)
        matches = [each for each in prefixes if name.startswith(each)] + [
            each for each in patterns if each == name
        ]
        assert len(matches) == 1


def test_the_table_of_subscriptions(bench: Bench) -> None:
    found = subscriptions.measure(bench)
    check_all_measured(found)
    flat, memory = found[:2]
    assert flat.what == "SEND 10 x 200, 1 match each, with 100 subscriptions / with 10"
    assert (str(flat.target), str(memory.target)) == (">= 0.8", "<= 1")
    assert len(flat.values) == TINY.rounds


def test_the_table_is_as_large_as_it_says(bench: Bench, edge: Text) -> None:
    """Check that each connection receives its tags; without the crowd, only the ten tags are delivered."""
    with contextlib.ExitStack() as running:
        table = subscriptions.open_table(edge, total=100, connections=20, running=running)
        table.subscribe_hot()
        table.subscribe_crowd()
        assert sorted(number for _, numbers in table.numbers() for number in numbers) == list(range(HOT, 100))
        with contextlib.closing(subscriptions.spread_load(edge, table)) as load:
            assert bench.generator.run(load, Bound(200, 20)).heard == 200
    with contextlib.ExitStack() as running:
        table = subscriptions.open_table(edge, total=100, connections=20, running=running)
        table.subscribe_hot()
        table.subscribe_crowd()
        table.unsubscribe_crowd()
        load = running.enter_context(contextlib.closing(subscriptions.spread_load(edge, table)))
        with pytest.raises(LoadFailed, match="each message once"):
            bench.generator.run(load, Bound(100, 0.5))


def test_delivery_through_two_edges_and_through_a_link(bench: Bench) -> None:
    found = delivery.measure(bench)
    check_all_measured(found)
    assert [str(finding.target) for finding in found if finding.target] == ["<= 10", "<= 20"]
    assert all(0 < value < 20_000 for finding in found for value in finding.values)


def test_an_edge_that_does_not_start(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "benchmarks.peers.text.serve_text_command",
        lambda *ports: ["sh", "-c", "echo it cannot be; exit 3"],
    )
    for found in (fanout.measure(bench), subscriptions.measure(bench), delivery.measure(bench)):
        assert {finding.verdict for finding in found} == {"not run"}
        assert all(finding.target and "it cannot be" in finding.note for finding in found)

"""Test that the measures count correctly, on a real store with tiny counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import protos.ring
from benchmarks import __main__ as command
from benchmarks.generator import Bound, Generator, LoadFailed, Outcome
from benchmarks.measures import depth, idle, paced, pipeline, store_alone, throughput
from benchmarks.measures.bench import Bench
from benchmarks.peers import make_peers
from benchmarks.peers.peer import BODY, Operation, Peer, Shape
from benchmarks.peers.redis import RawXadd, Store, encode_command, parse_csv
from benchmarks.peers.ring import PULL, PUSH, encode_request
from benchmarks.process import NotRun, Workshop
from tests.benchmarks.conftest import TINY


class Absent(Peer):
    name, title, promise = "absent", "Absent", "none"

    def start(self) -> None:
        raise NotRun("it is missing")

    def version(self) -> str:
        return ""

    def measure(self, generator: Generator, shape: Shape, bound: Bound) -> dict[Operation, Outcome]:
        raise AssertionError("never started")


class Failing(Absent):
    name = "failing"

    def start(self) -> None:
        pass

    def measure(self, generator: Generator, shape: Shape, bound: Bound) -> dict[Operation, Outcome]:
        raise LoadFailed("it hung up")


def test_every_put_is_in_the_store(bench: Bench) -> None:
    peer = RawXadd(bench.workshop, bench.store)
    peer.start()
    outcome = peer.put(bench.generator, Shape(3, 5), Bound(100, 20), "q")
    with bench.store.connect() as redis:
        assert redis.xlen("q") == outcome.messages == 100
        peer.delete("q")
        assert redis.exists("q") == 0
    assert bench.store.cpu_s() > 0
    assert peer.version().split()[0] in ("Valkey", "Redis")


def test_a_refusal_fails_the_peer(bench: Bench) -> None:
    peer = RawXadd(bench.workshop, bench.store)
    peer.start()
    with bench.store.connect() as redis:
        redis.set("q", "not a stream")
    with pytest.raises(LoadFailed, match="refused"):
        peer.put(bench.generator, Shape(1, 1), Bound(10, 20), "q")


def test_throughput_keeps_every_round_and_names_absent_peers(bench: Bench) -> None:
    peers = [RawXadd(bench.workshop, bench.store), Absent(bench.workshop), Failing(bench.workshop)]
    bench.plan = TINY.with_rounds(2)
    bench.peers = {peer.name: peer for peer in peers}
    assert throughput.measure(bench) == []  # nothing to compare with
    xadd, absent, failing = bench.results.peers
    assert {name: len(cell.rates) for name, cell in xadd.cells.items()} == {
        "put 10 x 200": 2,
        "put 50 x 1": 2,
    }
    assert (absent.not_run, failing.not_run) == ("it is missing", "failed: it hung up")


def test_the_edge_may_be_missing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.peers.tmq.penstock", lambda: "/no/such/penstock")
    peers = make_peers(bench.workshop, bench.store)
    bench.peers = {name: peers[name] for name in ("xadd", "tmq")}
    for found in (paced.measure(bench), idle.measure(bench)[:1], depth.measure(bench)):
        assert len(found) == 1
        assert "/no/such/penstock is not there" in found[0].note
        assert found[0].verdict == "not run"


def test_all_measures_of_the_edge(bench: Bench) -> None:
    """Check that all messages put into `penstock serve tmq` are taken out, at every shape and depth."""
    peers = make_peers(bench.workshop, bench.store)
    bench.peers = {name: peers[name] for name in ("tmq", "xadd")}
    found = [*idle.measure(bench), *throughput.measure(bench), *paced.measure(bench), *depth.measure(bench)]
    assert [finding for finding in found if not finding.values] == []
    assert [peer.not_run for peer in bench.results.peers] == ["", ""]
    assert set(bench.results.peers[0].cells) == {"put 10 x 200", "take 10 x 200", "put 50 x 1", "take 50 x 1"}


def test_the_ring_s_client_port(bench: Bench) -> None:
    """Check that every message pushed to `python -m services.ring` is pulled, at every shape."""
    bench.peers = {"ring": make_peers(bench.workshop, bench.store)["ring"]}
    throughput.measure(bench)
    (ring,) = bench.results.peers
    assert ring.not_run == ""
    assert set(ring.cells) == {"put 10 x 200", "take 10 x 200", "put 50 x 1", "take 50 x 1"}


def test_ring_octets_are_the_protocol_s() -> None:
    """Check that the benchmark's encoding equals that of the protocol (ring.md 5.1)."""
    echo = protos.ring.echo_of(b"bench", b"q")
    pushed = protos.ring.Push(echo, b"q", [protos.ring.encode_record(BODY)])
    assert encode_request(PUSH, "q", BODY) == protos.ring.encode_request(pushed)
    assert encode_request(PULL, "q") == protos.ring.encode_request(protos.ring.Pull(echo, b"q", 1))


def test_idle_connections_of_the_store(bench: Bench) -> None:
    bench.peers = {"xadd": RawXadd(bench.workshop, bench.store)}
    (finding,) = idle.measure(bench)
    assert finding.what == "20 idle connections: the store, raw"
    assert len(finding.values) == 1


def test_a_store_without_a_server(place: Workshop) -> None:
    store = Store(place, "/no/such/redis-server")
    for _ in range(2):
        with pytest.raises(NotRun, match="no Redis server: /no/such/redis-server"):
            store.start()


SIDE = '''
from benchmarks.peers.redis import encode_command

class Side:
    """A list: RPUSH, LPOP, and a counter of what was settled."""
    def publish(self, messages):
        return encode_command("RPUSH", "list", *["x" * 100] * messages)
    def step(self, taken, publish, want):
        count = len(taken or ())
        calls = [("settle", encode_command("INCRBY", "settled", str(count)))] * bool(count)
        calls += [("publish", self.publish(publish))] * bool(publish)
        return [*calls, ("take", encode_command("LPOP", "list", str(want)))], count

def make_side(port):
    return Side()
'''


def test_store_sides_are_compared(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ours", "other"):
        (tmp_path / f"{name}.py").write_text(SIDE)
    monkeypatch.setattr(store_alone, "OURS", tmp_path / "ours.py")
    monkeypatch.setattr(store_alone, "BASELINE", tmp_path / "ours.py")
    bench.store_beside = tmp_path / "other.py"
    found = {finding.what: finding for finding in store_alone.measure(bench)}
    assert found["raw XADD, batch 100"].value > 0
    assert found["other: take + settle, batch 500"].value > 0
    assert len(found["all three, batch 100: Penstock / other"].values) == TINY.rounds


@pytest.mark.parametrize("mode", list(pipeline.Mode))
def test_the_pipeline_settles_all_that_it_published(
    bench: Bench, tmp_path: Path, mode: pipeline.Mode
) -> None:
    (tmp_path / "side.py").write_text(SIDE)
    bench.store.start()
    side = store_alone.load_side(tmp_path / "side.py")(bench.store.port)
    assert pipeline.drive(bench.store.port, side, mode, batch=50, messages=500) > 0
    with bench.store.connect() as redis:
        left, settled = redis.llen("list"), int(redis.get("settled") or 0)
    assert (left, settled) == ((500, 0) if mode is pipeline.Mode.PUBLISH else (0, 500))


def test_a_refused_call_ends_the_pipeline(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "side.py").write_text(SIDE)
    bench.store.start()
    with bench.store.connect() as redis:
        redis.set("list", "not a list")
    side = store_alone.load_side(tmp_path / "side.py")(bench.store.port)
    with pytest.raises(OSError, match="refused"):
        pipeline.drive(bench.store.port, side, pipeline.Mode.PUBLISH, batch=50, messages=100)


def test_redis_benchmarks_csv() -> None:
    text = (
        '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms",'
        '"max_latency_ms"\n"XADD","50000.00","0.9","0.1","0.8","1.2","1.5","9.0"\n'
    )
    outcome = parse_csv(text, 100_000)
    assert (outcome.rate, outcome.p50_us, outcome.p99_us) == (50_000, 800, 1500)


def test_a_command_in_resp() -> None:
    assert encode_command("XADD", b"\0") == b"*2\r\n$4\r\nXADD\r\n$1\r\n\0\r\n"


@pytest.mark.parametrize("argv", [["--rounds", "0"], ["--rounds", "x"], ["--only", "kafka"]])
def test_wrong_options_are_refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.parse(argv)
    assert ended.value.code == 2
    assert argv[0] in capsys.readouterr().err


def test_peers_alone_mean_throughput() -> None:
    assert command.measures([]) == list(command.MEASURES)
    assert command.measures(["nats"]) == ["throughput"]
    assert command.measures(["nats", "idle"]) == ["idle"]


def test_a_run_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "QUICK", TINY)
    options = [
        "--quick",
        "--rounds",
        "1",
        "--only",
        "xadd",
        "--folder",
        str(tmp_path),
        "--results",
        str(tmp_path),
    ]
    assert command.main(options) == 0
    (kept,) = tmp_path.glob("*.json")
    assert json.loads(kept.read_text())["peers"][0]["name"] == "xadd"
    assert "raw XADD" in capsys.readouterr().out


def test_the_store_side_of_this_project_still_speaks_to_it(bench: Bench) -> None:
    """Check that the hand-built calls match the store's functions, before a long run fails on them."""
    bench.store.start()
    side = store_alone.load_side(store_alone.OURS)(bench.store.port)
    for mode in pipeline.Mode:
        assert pipeline.drive(bench.store.port, side, mode, 10, 50) > 0

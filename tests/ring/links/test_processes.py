"""Nodes as real processes: closed, killed, stopped, told to end (ring.md 3, 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.ring.links.program import NodeProgram, is_led_ring, started
from tests.servers import Server, eventually

Spawn = Callable[..., NodeProgram]


@pytest.fixture
def spawn(server: Server, port: int, tmp_path: Path) -> Iterator[Spawn]:
    programs: list[NodeProgram] = []

    def make(*settings: str) -> NodeProgram:
        programs.append(NodeProgram(server.url, tmp_path, port, *settings))
        return programs[-1]

    yield make
    for program in programs:
        program.end()


def test_killed_processes_are_closed_over(spawn: Spawn) -> None:
    """3, 4: closed, and healed after a kill -9 of the leader and of another one at once.

    How soon is for `python -m benchmarks --only around`.
    """
    programs = [spawn() for _ in range(5)]
    started(programs)
    eventually(lambda: is_led_ring(programs))
    gone = [next(each for each in programs if each.told()["is_leader"])]
    gone.append(next(each for each in programs if each not in gone))
    for each in gone:
        each.kill9()
        programs.remove(each)
    eventually(lambda: is_led_ring(programs))
    assert all(each.told()["breaks"] < 20 for each in programs)


def test_a_process_that_is_told_to_end(spawn: Spawn) -> None:
    """It ends in order, soon, and its neighbours close the ring without it."""
    programs = [spawn() for _ in range(3)]
    started(programs)
    eventually(lambda: is_led_ring(programs))
    assert programs[0].stop() == 0, programs[0].text()
    assert "Traceback" not in programs[0].text()
    assert not programs[0].events("drain_cut_short")
    eventually(lambda: is_led_ring(programs[1:]))


def test_pages_and_metrics(spawn: Spawn) -> None:
    """docs/operations.md"""
    programs = [spawn() for _ in range(2)]
    started(programs)
    eventually(lambda: is_led_ring(programs))

    def pages() -> list[str]:
        return [program.page("/metrics").decode() for program in programs]

    eventually(lambda: sum('penstock_ring_leader{edge="ring"} 1.0' in page for page in pages()) == 1)
    for page in pages():
        assert 'penstock_ring_beacons_sent_total{edge="ring",kind="open"}' in page
    told = programs[0].told()
    assert told["pid"] == programs[0].process.pid
    assert told["successor"]["name"] == programs[1].told()["name"]
    assert [member["name"] for member in told["members"]] == [programs[1].told()["name"]]


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        (
            "listeners.ring.host=0.0.0.0",
            "penstock: edges.ring.node.advertise: missing, as listeners.ring.host 0.0.0.0",
        ),
        ("node.advertise=::1", "penstock: edges.ring.node.advertise: must be an IPv4 address or a name"),
        (
            "node.broadcast=[10.0.0.255]",
            "penstock: edges.ring.node.advertise: others would look for this node at 127.0.0.1",
        ),
        (
            "node={advertise: localhost, beacon_host: 10.98.76.5}",
            "Cannot assign requested address; set edges.ring.node.beacon_host to what",
        ),
    ],
)
def test_settings_that_cannot_be_used(spawn: Spawn, setting: str, says: str) -> None:
    """One line that says what to do, and exit status 2."""
    program = spawn(setting)
    assert program.process.wait(20) == 2
    assert says in program.text()
    assert "Traceback" not in program.text()

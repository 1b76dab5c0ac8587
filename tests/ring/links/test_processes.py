"""Nodes as real processes: closed, killed, stopped and terminated (ring.md 3, 4)."""

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


def test_processes_form_a_ring_and_reform_it_after_exits(spawn: Spawn) -> None:
    """Check that processes form a ring and reform it after exits (3, 4).

    One is terminated; later the leader and another one are killed together.

    `python -m benchmarks --only around` measures how soon; docs/operations.md describes the pages.
    """
    programs = [spawn() for _ in range(5)]
    started(programs)
    eventually(lambda: is_led_ring(programs))
    pages = [program.page("/metrics").decode() for program in programs]
    assert all('penstock_ring_beacons_sent_total{edge="ring",kind="open"}' in page for page in pages)
    eventually(lambda: leaders(programs) == [1.0, 0.0, 0.0, 0.0, 0.0])
    status = programs[0].status()
    names = {program.status()["name"]: program for program in programs}
    assert status["pid"] == programs[0].process.pid
    assert status["successor"]["name"] in names
    assert {member["name"] for member in status["members"]} == names.keys() - {status["name"]}
    ended = programs.pop(0)
    assert ended.stop() == 0, ended.text()
    assert "Traceback" not in ended.text()
    assert not ended.events("drain_cut_short")
    eventually(lambda: is_led_ring(programs))
    gone = [next(each for each in programs if each.status()["is_leader"])]
    gone.append(next(each for each in programs if each not in gone))
    for each in gone:
        each.kill9()
        programs.remove(each)
    eventually(lambda: is_led_ring(programs))
    assert all(each.status()["breaks"] < 20 for each in programs)


def leaders(programs: list[NodeProgram]) -> list[float]:
    """Return the leader metric of each node, the leader's first."""
    name = 'penstock_ring_leader{edge="ring"} '
    pages = [program.page("/metrics").decode() for program in programs]
    return sorted((float(page.split(name)[1].split()[0]) for page in pages), reverse=True)


def test_settings_that_cannot_be_used(spawn: Spawn) -> None:
    """Check that unusable settings print one line that says what to do, with exit status 2."""
    program = spawn("node={advertise: localhost, beacon_host: 10.98.76.5}")
    assert program.process.wait(20) == 2
    assert "Cannot assign requested address; set edges.ring.node.beacon_host to an address" in program.text()
    assert "Traceback" not in program.text()

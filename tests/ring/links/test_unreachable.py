"""Log messages about nodes that others cannot connect to (ring.md 3.6)."""

from __future__ import annotations

import logging

import pytest

from protos.ring import Node
from services.ring.node.discovery.unreachable import VAIN_DIALS, Unreachable
from tests.live import until
from tests.protos.ring.node_samples import HIGH, LOW, in_ring, linked, started
from tests.ring.links.conftest import Start
from tests.ring.links.live import GROUP
from tests.ring.links.peers import Tail

ALONE_S = 300.0


def warnings(caplog: pytest.LogCaptureFixture, action: str) -> int:
    lines = [line for line in caplog.records if vars(line).get("action") == action]
    assert all(line.levelno == logging.WARNING for line in lines)
    return len(lines)


def look_until(unreachable: Unreachable, start: float, end: float) -> None:
    for now in range(int(start), int(end)):
        unreachable.tick(float(now))


def test_node_without_predecessor_for_300_s_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    node = linked(started())
    unreachable = Unreachable(node, ALONE_S)
    look_until(unreachable, 0, 300)
    assert warnings(caplog, "ring_unreachable") == 0
    look_until(unreachable, 300, 2000)
    assert warnings(caplog, "ring_unreachable") == 1


def test_warning_survives_opening_a_ring_without_leader(caplog: pytest.LogCaptureFixture) -> None:
    """Check that the warning remains after the ring is opened for lack of a leader (4.6: after 300 s)."""
    node = linked(started())
    unreachable = Unreachable(node, ALONE_S)
    look_until(unreachable, 0, 200)
    node.outbound_lost("closed", 200.0)
    look_until(unreachable, 200, 600)
    assert warnings(caplog, "ring_unreachable") == 0, "the node is alone"
    linked(node, 600.0)
    look_until(unreachable, 600, 720)
    assert warnings(caplog, "ring_unreachable") == 1


@pytest.mark.parametrize("node", [started(), in_ring()], ids=["alone", "in a ring"])
def test_no_warning_for_a_lone_or_linked_node(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    look_until(Unreachable(node, ALONE_S), 0, 2000)
    assert warnings(caplog, "ring_unreachable") == 0


def test_warning_repeats_after_a_predecessor_came_and_left(caplog: pytest.LogCaptureFixture) -> None:
    node = linked(started())
    unreachable = Unreachable(node, ALONE_S)
    look_until(unreachable, 0, 301)
    node.accepted(1, 301.0)
    node.heard(1, 301.0)
    look_until(unreachable, 301, 400)
    node.inbound_lost(1, "closed", 400.0)
    look_until(unreachable, 400, 699)
    assert warnings(caplog, "ring_unreachable") == 1
    look_until(unreachable, 699, 702)
    assert warnings(caplog, "ring_unreachable") == 2


def test_five_failed_dials_in_a_row_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    unreachable = Unreachable(started(), ALONE_S)
    for _ in range(VAIN_DIALS - 1):
        unreachable.failed(HIGH)
        unreachable.failed(LOW)
    unreachable.reached(HIGH)
    unreachable.failed(HIGH)
    assert warnings(caplog, "ring_unreached") == 0
    for _ in range(3):
        unreachable.failed(LOW)
    assert warnings(caplog, "ring_unreached") == 1


def test_stalled_time_does_not_count(caplog: pytest.LogCaptureFixture) -> None:
    unreachable = Unreachable(linked(started()), ALONE_S)
    unreachable.tick(0.0)
    unreachable.tick(1000.0)
    assert warnings(caplog, "ring_unreachable") == 0


async def test_node_logs_its_own_unreachability(start: Start, port: int) -> None:
    node = await start(times={"alone_s": 0.5, "idle_s": 1000.0, "silence_s": 2000.0})
    async with Tail() as tail:
        after = await tail.called_by_node(GROUP, port)
        await after.message()
        after.say(b"A")
        await until(lambda: node.log.events("ring_unreachable", node=node.name.decode()))


async def test_node_logs_an_unreachable_node(start: Start, port: int) -> None:
    node = await start(times={"open_s": 0.1, "self_s": 60.0})
    async with Tail() as gone:
        pass

    def is_logged() -> bool:
        gone.announce(GROUP, port)
        return bool(node.log.events("ring_unreached"))

    await until(is_logged)
    assert node.number("dials_total", result="failed") >= VAIN_DIALS
    assert [vars(line)["node"] for line in node.log.events("ring_unreached")] == [gone.name.decode()]

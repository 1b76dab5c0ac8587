"""Rings of our nodes and original ones (ring.md 4.8): the marks [R]."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from tests.live import until
from tests.ring.links.conftest import Start
from tests.ring.links.live import GROUP, LiveNode
from tests.ring.links.original import Original


def is_one_ring(nodes: list[LiveNode], originals: list[Original]) -> bool:
    following = {node.name: node.successor for node in nodes} | {
        each.name: each.successor for each in originals
    }
    first = at = nodes[0].name
    seen = set()
    while at is not None and at not in seen and at in following:
        seen.add(at)
        at = following[at]  # type: ignore[assignment]
    return (
        seen == following.keys()
        and at == first
        and all(node.station.predecessor for node in nodes)
        and all(each.has_predecessor for each in originals)
    )


def leaders(nodes: list[LiveNode], originals: list[Original]) -> list[bytes]:
    return [node.name for node in nodes if node.is_leader] + [
        each.name for each in originals if each.is_leader
    ]


@pytest.mark.parametrize(
    ("ours", "suffixes"),
    [(2, ["1"]), (2, ["~"]), (1, ["1", "~"]), (1, ["0"]), (3, ["0", "2"]), (2, ["0", "2", "~"])],
    ids=lambda value: str(value),
)
async def test_originals_and_our_nodes_form_a_ring(
    start: Start, port: int, ours: int, suffixes: list[str]
) -> None:
    """Check that originals and our nodes form a ring for any order of their names (3.6, 4.2).

    USERs go around, and LOOPs with their TTL.
    """
    async with AsyncExitStack() as stack:
        nodes = [await start() for _ in range(ours)]
        originals = [await stack.enter_async_context(Original(GROUP, port, suffix)) for suffix in suffixes]
        await until(lambda: is_one_ring(nodes, originals))
        if "~" not in suffixes:  # an original with the highest name may leave a ring without a leader (4.2)
            await until(lambda: len(leaders(nodes, originals)) == 1)
        sent = [b"%d" % n for n in range(100)]
        nodes[0].carrier.put(*sent)
        await until(lambda: set(nodes[0].carrier.arrived) >= set(sent))
        for each in originals:
            assert set(each.users) >= set(sent)
        for node in nodes:
            assert set(node.carrier.arrived) >= set(sent)


async def test_original_is_replaced_by_another(start: Start, port: int) -> None:
    """Check that an original is replaced by another (4.4, 4.5)."""
    nodes = [await start() for _ in range(2)]
    async with Original(GROUP, port, "1") as original:
        await until(lambda: is_one_ring(nodes, [original]))
    await until(lambda: is_one_ring(nodes, []))
    async with Original(GROUP, port, "2") as other:
        await until(lambda: is_one_ring(nodes, [other]))


async def test_ring_closes_without_a_hung_original(start: Start, port: int) -> None:
    """Check that a ring closes without a hung original (4.6).

    Its system keeps both connections, so only missing proposals show that it hangs.
    """
    nodes = [await start(times={"propose_s": 0.5}) for _ in range(2)]
    async with Original(GROUP, port, "1") as original:
        await until(lambda: is_one_ring(nodes, [original]) and len(leaders(nodes, [])) == 1)
        original.hang()
        text = "the predecessor is silent: no proposal comes around"
        await until(lambda: text in [last.why for node in nodes if (last := node.station.node.last_break)])
        await until(lambda: is_one_ring(nodes, []) and len(leaders(nodes, [])) == 1)

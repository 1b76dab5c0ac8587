"""What an inbox keeps does not come back, and a node must not wait for it with others' equal payloads (ring.md 5.5)."""

from __future__ import annotations

from functools import partial

from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Member, Ring, Start
from tests.ring.users.test_requests import stores

OUTBOX = {"ring": {"outbox": 1}}
INBOX = {"ring": {"inbox": 1}}


async def got(node: Member, bodies: list[bytes]) -> bool:
    return await node.bodies("in") == bodies


async def test_equal_payloads_of_others_reach_the_inbox(start: Start, new_server: NewServer) -> None:
    """5.5: the inbox is behind the one sender and before the other"""
    first, inbox, second = nodes = await stores(start, new_server, 3)
    await first.declare("out", bindings=OUTBOX)
    await second.declare("out", bindings=OUTBOX)
    await inbox.declare("in", bindings=INBOX)
    await until(lambda: first.users._bindings.outbox and second.users._bindings.outbox)
    await until(lambda: inbox.users._bindings.inbox)
    ring = Ring(nodes)
    await first.put("out", *[b"ping"] * 5)
    await until(partial(got, inbox, [b"ping"] * 5))
    await until(lambda: first.count("mark") >= 1)
    await until(lambda: not first.users.marks_wanted)
    await second.put("out", *[b"ping"] * 8)
    await until(partial(got, inbox, [b"ping"] * 13))
    await until(lambda: not second.users.marks_wanted)
    await ring.settle_down()
    assert first.count("taken_off") == second.count("taken_off") == 0


async def test_without_an_inbox_each_takes_off_its_own(start: Start, new_server: NewServer) -> None:
    """5.5: there all of it comes back, before the mark"""
    nodes = await stores(start, new_server, 3)
    await nodes[0].declare("out", bindings=OUTBOX)
    await until(lambda: nodes[0].users._bindings.outbox)
    ring = Ring(nodes)
    for turn in range(5):
        await nodes[0].put("out", *[b"%d" % turn] * 40)
        await until(lambda turn=turn: nodes[0].count("taken_off") == 40 * turn + 40)
    await ring.settle_down()
    assert nodes[0].count("taken_off") == 200
    assert not nodes[0].users.marks_wanted
    assert nodes[0].count("mark") <= 5, "no mark follows what has come back"

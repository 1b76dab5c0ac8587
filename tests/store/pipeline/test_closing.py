"""A process that ends in order returns its messages."""

from __future__ import annotations

from tests.store.desk import Desk, bodies


async def test_closed_session_returns_its_messages(desk: Desk) -> None:
    queue = await desk.queue()
    async with desk.another(edge="leaving") as leaving:
        theirs = await leaving.store.catalogue.find("orders")
        await desk.put(queue, b"1", b"2", b"3")
        first, rest = (await leaving.take(theirs))[0].cut(1)
        await leaving.settle([first])
        assert rest.count == 2
    assert await desk.domain.sweep() == 2
    assert bodies(await desk.take(queue)) == [b"2", b"3"]


async def test_session_without_leases_leaves_no_keys(desk: Desk) -> None:
    async with desk.another(edge="leaving") as leaving:
        session = leaving.pipe.session
    link, keys = desk.domain.link, desk.domain.keys
    assert await link.call("ZSCORE", keys.sessions, session) is None
    assert await link.call("ZSCORE", keys.dying, session) is None
    assert await link.call("EXISTS", keys.lane(session), keys.lots(session)) == 0

"""Taking and settling: what is given out, in which order, and that only its holder can settle it (tmq.md 6)."""

from tests.store.desk import Desk, bodies, numbered


async def test_messages_come_out_once_in_the_order_in_which_they_came_in(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(100))
    got = await desk.take(queue, 40)
    assert bodies(got) == numbered(40)
    assert bodies(await desk.take(queue)) == numbered(60, 40)
    assert await desk.take(queue) == []

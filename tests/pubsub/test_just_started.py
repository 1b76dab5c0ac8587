"""A server that has just started to listen (pubsub.md 3.2)."""

from __future__ import annotations

from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.servers import Server


async def test_subscription_is_served_from_its_begin_before_the_log_is_followed(
    server: Server, start: Start
) -> None:
    """Check that a subscription is served from its begin before the log is followed.

    A client may subscribe at once, at a place before the one from which the server follows.
    """
    sender = await (await start(server)).client()
    for number in range(4):
        edge = LiveEdge(server.url)
        await edge.begin()
        try:
            subscriber = await edge.client()
            await subscriber.subscribe(b"1", b"t*")
            for word in (b"first", b"second"):
                await sender.publish(b"t", b"%b %d" % (word, number))
                assert await subscriber.line() == b"MESSAGE 1 %b %d\n" % (word, number)
        finally:
            await edge.close()

"""Without its store a server acknowledges nothing until the log's ack level is known (pubsub.md 3.1)."""

from __future__ import annotations

from collections.abc import Callable

from services.store.log.log import START
from tests.live import set_up, until
from tests.pubsub.live import LiveEdge
from tests.servers import Server


async def test_sends_before_the_log_is_open_wait_or_are_refused(
    new_server: Callable[[], Server],
) -> None:
    server = new_server()  # empty: not set up
    edge = LiveEdge(server.url, store={"patience_s": 0.3})
    await edge.begin()
    try:
        client = await edge.client()
        assert (await client.ask(b"SEND t too early\n")).startswith(b"ERROR the store")
        assert not edge.is_ready()
        await set_up(server)
        await client.send(b"SEND t x\n" * 3)
        answers = await client.lines(3)
        await until(edge.is_ready)
        stored = [entry.messages for entry in await edge.service.log.read(START)]
        assert sum(stored) == answers.count(b"OK\n")
        await client.publish(b"t", b"y")
    finally:
        await edge.close()

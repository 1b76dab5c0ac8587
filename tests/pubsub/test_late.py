"""Subscriptions whose answer was slower than the log are served separately until they catch up (pubsub.md 3.2-3.4)."""

from __future__ import annotations

from tests.live import until
from tests.pubsub.conftest import Start
from tests.pubsub.slow import SMALL, TIGHT, LateAnswers, behind, publish
from tests.servers import Server

ROOMY = {"listeners": {"text": {"port": 0, "write_buffer_bytes": 16 << 20}}, **TIGHT}
OTHERS = 40  # subscriptions of the same connection that are on time


async def test_late_subscription_gets_everything_once_while_its_connection_falls_behind(
    server: Server, start: Start
) -> None:
    """Check that a late subscription gets each message once while its connection falls behind (3.2, 3.6).

    First it is behind alone, then with all others of its connection, then they alone are.
    """
    edge = await start(server, **ROOMY)
    slow, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    await slow.send(b"".join(b"SUBSCRIBE %d a.t\n" % n for n in range(OTHERS)))
    assert await slow.lines(OTHERS) == [b"OK\n"] * OTHERS
    answers = LateAnswers(edge)
    await slow.send(b"SUBSCRIBE 99 a*\n")
    await answers.given()
    slow.stop_reading()
    await publish(sender, 0, 6000, b"a.u")
    (late,) = await answers.let_through()
    assert behind(edge) == 0
    await publish(sender, 6000, 300, b"a.t")
    await until(lambda: behind(edge) == 1)
    assert late.is_late
    slow.read_on()
    assert await slow.line() == b"OK\n"
    seen: dict[int, list[int]] = {n: [] for n in (*range(OTHERS), 99)}

    async def read() -> None:
        _, identifier, number, _ = (await slow.line()).split()
        seen[int(identifier)].append(int(number))

    while late.is_late:
        await read()
    await until(lambda: behind(edge) == 1)
    await publish(sender, 6300, 10, b"a.t")
    while any(not numbers or numbers[-1] < 6309 for numbers in seen.values()):
        await read()
    await slow.nothing_more()
    assert seen.pop(99) == list(range(6310))
    assert list(seen.values()) == [list(range(6000, 6310))] * OTHERS
    await until(lambda: behind(edge) == 0)


async def test_late_subscription_counts_and_can_be_ended(server: Server, start: Start) -> None:
    """Check that a late subscription counts and can be ended before it has caught up (2.2).

    It is sent what the log held by then, and nothing of it remains.
    """
    edge = await start(server, **ROOMY, max_subscriptions_in_all=1)
    slow, sender = await edge.client(receive_buffer=SMALL), await edge.client()
    answers = LateAnswers(edge)
    await slow.send(b"SUBSCRIBE 1 t\n")
    await answers.given()
    slow.stop_reading()
    await publish(sender, 0, 6000)
    (late,) = await answers.let_through()
    await until(lambda: edge.value("penstock_subscriptions") == 1)
    assert (await sender.ask(b"SUBSCRIBE 1 t\n")).startswith(b"ERROR no more than 1 subscriptions")
    assert late.is_late
    await slow.send(b"UNSUBSCRIBE 1\n")
    slow.read_on()
    assert await slow.line() == b"OK\n"
    got = 0
    while (line := await slow.line()) != b"OK\n":
        assert line.startswith(b"MESSAGE 1 %d " % got)
        got += 1
    assert got == 6000
    await slow.nothing_more()
    await until(lambda: edge.value("penstock_subscriptions") == 0)
    assert edge.routed == 0

"""Test the session's deadline: it applies to the peer, not to this process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

from services.kit.net.alarm import Alarm
from services.kit.session.session import Wire
from tests.kit.echo_edge import EchoSession, frame
from tests.kit.harness import Server, until


def hasty(wire: Wire) -> EchoSession:
    return EchoSession(wire, frame_timeout_s=0.5)


async def test_unfinished_frame_times_out() -> None:
    """Check that an incomplete frame times out, even if it arrives slowly (tmq.md 7.3)."""
    async with Server(hasty) as server:
        client = await server.client()
        started = time.monotonic()
        client.send(frame(b"E", b"hello")[:-1])
        assert await client.ended() == "fin"
        assert time.monotonic() - started >= 0.499  # the loop counts in milliseconds
        assert server.refusals("request_timeout") == 1


async def test_slow_bytes_do_not_extend_the_deadline() -> None:
    async with Server(hasty) as server:
        client = await server.client()
        started = time.monotonic()
        session = await server.session()
        for byte in frame(b"E", bytes(1000)):
            if session.lost_with is not None or "on_time" in session.calls:
                break
            client.send(bytes((byte,)))
            await asyncio.sleep(0.01)  # the pace of this drip
        await until(lambda: "on_time" in session.calls)
        assert time.monotonic() - started < 5


async def test_idle_connections_do_not_time_out() -> None:
    """Check that idle connections do not time out (tmq.md 7.3 [D])."""
    async with Server(hasty) as server:
        client = await server.client()
        client.send(frame(b"E", b"one")[:5])
        session = await server.session()
        await until(lambda: session.deadline() is not None)
        client.send(frame(b"E", b"one")[5:])
        assert await client.answer() == b"one"
        await asyncio.sleep(0.8)  # longer than the limit: the armed timer must find nothing overdue
        client.send(frame(b"E", b"two"))
        assert await client.answer() == b"two"
        assert "on_time" not in session.calls


async def test_stalled_loop_does_not_time_out_the_peer() -> None:
    async with Server(hasty) as server:
        client = await server.client()
        client.send(frame(b"E", b"hello")[:4])
        session = await server.session()
        await until(lambda: session.deadline() is not None)
        client.send(frame(b"E", b"hello")[4:])  # in the server's kernel at once, bypassing the loop
        time.sleep(0.8)  # noqa: ASYNC251 - the stall: the deadline passes while the bytes wait unread
        assert await client.answer() == b"hello"
        assert "on_time" not in session.calls


class Stalling(EchoSession):
    """A session that blocks the loop while it is given bytes; `meanwhile` runs during that time."""

    stall_s = 0.0
    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def received(self, data: bytes, now: float) -> None:
        super().received(data, now)
        time.sleep(self.stall_s)
        self.meanwhile()


async def test_unread_input_is_read_before_the_deadline() -> None:
    """Check that unread input is read before the deadline.

    The loop polled for input before that arrived, and runs timers before it polls again.
    """
    async with Server(lambda wire: Stalling(wire, frame_timeout_s=0.5)) as server:
        client, other = await server.client(), await server.client()
        request = frame(b"E", b"hello")
        client.send(request[:4])
        session, stalling = await server.session(), await server.session(1)
        await until(lambda: session.deadline() is not None)
        assert isinstance(stalling, Stalling)
        stalling.stall_s = 0.8
        stalling.meanwhile = lambda: os.write(client.socket.fileno(), request[4:])
        other.send(frame(b"E", b"busy"))
        assert await client.answer() == b"hello"
        assert "on_time" not in session.calls


async def test_unread_input_postpones_the_deadline_once() -> None:
    """Check that unread input postpones the deadline once; otherwise steady small pieces would postpone it forever."""
    async with Server(lambda wire: Stalling(wire, frame_timeout_s=0.5)) as server:
        client = await server.client()
        session = await server.session()
        assert isinstance(session, Stalling)
        late = 0

        def send_more() -> None:
            """Send more, so that unread input exists whenever the loop runs timers."""
            nonlocal late
            late += session.wire.loop_time() > session.waits_since + 0.5
            if late < 100:
                os.write(client.socket.fileno(), b"E")

        session.stall_s = 0.005
        session.meanwhile = send_more
        client.send(frame(b"E", bytes(100_000))[:4])
        await until(lambda: "on_time" in session.calls)
        assert 0 < late < 10
        assert await client.ended() == "fin"


async def test_silent_peer_times_out_after_a_stalled_loop() -> None:
    async with Server(hasty) as server:
        client = await server.client()
        client.send(frame(b"E", b"hello")[:4])
        session = await server.session()
        await until(lambda: session.deadline() is not None)
        client.send(b"E")  # a part of it
        time.sleep(0.8)  # noqa: ASYNC251 - the stall
        assert await client.ended() == "fin"
        assert session.calls.count("on_time") == 1


async def test_deadline_does_not_apply_while_reading_is_paused() -> None:
    async with Server(hasty) as server:
        client = await server.client()
        client.send(frame(b"E", b"hello")[:4])
        session = await server.session()
        await until(lambda: session.deadline() is not None)
        session.wire.pause()
        await asyncio.sleep(0.8)  # longer than the limit
        assert "on_time" not in session.calls
        session.wire.resume()
        client.send(frame(b"E", b"hello")[4:])
        assert await client.answer() == b"hello"


class Lingering(EchoSession):
    """A session that waits 0.2 s after the peer's FIN, as tmq.md 6.1 requires, then closes."""

    def eof(self, now: float) -> None:
        self.calls.append("eof")
        self.due: float | None = now + 0.2

    def deadline(self) -> float | None:
        return getattr(self, "due", None)

    def on_time(self, now: float) -> None:
        self.calls.append("on_time")
        self.due = None
        self.wire.close()


async def test_deadline_always_applies_after_the_peers_fin() -> None:
    async with Server(Lingering) as server:
        client = await server.client()
        session = await server.session()
        session.wire.pause()
        session.wire.resume()
        client.writer.write_eof()
        assert await client.rest() == b""
        await until(lambda: session.lost_with is False)
        assert session.calls == ["resumed", "eof", "on_time", "lost"]


class Rescheduling(EchoSession):
    due: float | None = None

    def deadline(self) -> float | None:
        return self.due

    def on_time(self, now: float) -> None:
        self.calls.append("on_time")
        self.due = None


async def test_reschedule_arms_a_new_deadline() -> None:
    async with Server(Rescheduling) as server:
        await server.client()
        session = await server.session()
        assert isinstance(session, Rescheduling)
        session.due = session.wire.loop_time() + 0.05
        session.wire.reschedule()
        await until(lambda: session.calls == ["on_time"])


async def test_postponed_alarm_keeps_its_timer() -> None:
    """Check that a postponed alarm keeps its timer, which fires early; an earlier one replaces it."""
    loop = asyncio.get_running_loop()
    rings: list[float] = []
    alarm = Alarm(loop, lambda: rings.append(loop.time()))
    start = loop.time()
    alarm.set(start + 0.1, start)
    alarm.set(start + 9.0, start)
    alarm.set(start + 0.05, start)
    await until(lambda: rings)
    assert 0.04 <= rings[0] - start < 5
    alarm.set(start + 0.2, loop.time())
    alarm.cancel()
    await asyncio.sleep(0.3)  # past the time for which it was cancelled
    assert len(rings) == 1

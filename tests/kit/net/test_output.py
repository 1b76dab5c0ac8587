"""Test unread output: bounded memory and bounded waiting (tmq.md 7.3)."""

from __future__ import annotations

import asyncio

import pytest

from tests.kit.authority import Authority
from tests.kit.echo_edge import LENGTH, EchoSession, frame
from tests.kit.harness import Client, Server, until

ANSWER = 64 << 10  # bytes
REQUESTS = 500  # 32 MB of answers, requested by 4 KB
BOUND = 256 << 10  # bytes; the default of write_buffer_bytes


class Measured(EchoSession):
    """A session that records the most bytes that ever waited in its transport."""

    most = 0

    def _answer(self, verb: bytes, argument: bytes) -> None:
        super()._answer(verb, argument)
        self.most = max(self.most, self.wire.backlog())


async def test_slow_reader_gets_everything_in_bounded_memory() -> None:
    async with Server(Measured) as server:
        client = await server.client()
        client.stop_reading()
        client.send(frame(b"F", str(ANSWER).encode()) * REQUESTS)
        session = await server.session()
        await until(session.wire.is_blocked)
        client.read_on()
        for _ in range(REQUESTS):
            assert len(await client.answer()) == ANSWER
        assert isinstance(session, Measured)
        assert BOUND < session.most <= BOUND + LENGTH.size + ANSWER
        assert session.calls.count("resumed") > 10


@pytest.mark.parametrize("encrypted", [False, True])
async def test_backlog_is_reported_until_the_connection_is_lost(
    authority: Authority, encrypted: bool
) -> None:
    more = {"tls": authority.listener()} if encrypted else {}
    async with Server(**more) as server:
        client = await server.client(**({"ssl": authority.client()} if encrypted else {}))
        wire = (await server.session()).wire
        wire.write(LENGTH.pack(ANSWER) + bytes(ANSWER))
        assert wire.backlog() == 0  # the kernel has taken it
        assert len(await client.answer()) == ANSWER
        client.stop_reading()
        wire.write(LENGTH.pack(20_000_000) + bytes(20_000_000))
        first = wire.backlog()
        assert 0 < first < wire.unsent()  # the kernel has the rest
        wire.write(LENGTH.pack(ANSWER) + bytes(ANSWER))
        assert ANSWER < wire.backlog() - first < ANSWER + 1000  # TLS adds little
        client.read_on()
        assert len(await client.answer()) == 20_000_000
        assert len(await client.answer()) == ANSWER
        await until(lambda: wire.backlog() == 0)
        client.stop_reading()
        wire.write(bytes(20_000_000))
        assert wire.backlog() > 0
        wire.abort()
        await until(lambda: not server.listener.connections)
        assert wire.backlog() == 0


async def test_blocked_session_receives_no_input() -> None:
    async with Server() as server:
        client = await server.client()
        client.stop_reading()
        client.send(frame(b"F", b"20000000"))
        session = await server.session()
        await until(session.wire.is_blocked)
        calls = len(session.calls)
        client.send(frame(b"E", b"after that"))
        await asyncio.sleep(0.05)  # long enough for it to be read, if it were
        assert session.calls[calls:] == []
        client.read_on()
        assert len(await client.answer()) == 20_000_000
        assert await client.answer() == b"after that"


async def test_reading_resumes_when_all_holds_end() -> None:
    async with Server() as server:
        client = await server.client()
        client.stop_reading()
        client.send(frame(b"F", b"20000000"))
        session = await server.session()
        await until(session.wire.is_blocked)
        session.wire.pause()
        client.send(frame(b"E", b"."))
        client.read_on()
        assert len(await client.answer()) == 20_000_000
        await until(lambda: not session.wire.is_blocked())
        assert "resumed" not in session.calls
        session.wire.resume()
        assert session.calls[-1] == "resumed"
        assert await client.answer() == b"."


async def test_output_without_progress_resets_the_connection() -> None:
    async with Server(write_timeout_s=0.3) as server:
        client = await server.client()
        client.stop_reading()
        client.send(frame(b"F", b"20000000"))
        session = await server.session()
        started = session.wire.loop_time()
        await until(lambda: session.lost_with is not None)
        assert session.lost_with is True
        assert asyncio.get_running_loop().time() - started >= 0.3
        assert server.refusals("write_timeout") == 1
        client.read_on()
        assert await client.ended() == "reset"


async def test_slow_reader_is_not_reset() -> None:
    async with Server(write_timeout_s=0.3) as server:
        client = await server.client()
        client.stop_reading()
        client.send(frame(b"F", b"30000000"))
        session = await server.session()
        await until(session.wire.is_blocked)
        started = asyncio.get_running_loop().time()
        received = 0
        while received < 30_000_004:
            received += await taken(client, min(2_000_000, 30_000_004 - received))
            await asyncio.sleep(0.1)  # the pace of this reader: longer than a check, shorter than the limit
        assert asyncio.get_running_loop().time() - started > 0.6
        assert server.refusals("write_timeout") == 0


async def test_session_may_watch_output_below_the_buffer_limit() -> None:
    async with Server(write_timeout_s=0.3, write_buffer_bytes=64 << 20) as server:
        client = await server.client()
        client.stop_reading()
        client.send(frame(b"F", b"20000000"))
        session = await server.session()
        await until(lambda: session.wire.backlog() > 0)
        assert not session.wire.is_blocked()
        session.wire.watch_output()
        await until(lambda: session.lost_with is not None)
        assert server.refusals("write_timeout") == 1


async def test_output_is_watched_until_it_has_arrived() -> None:
    async with Server(write_timeout_s=0.3, write_buffer_bytes=64 << 20) as server:
        client = await server.client()
        client.stop_reading()
        client.send(frame(b"F", b"20000000"))
        session = await server.session()
        await until(lambda: session.wire.backlog() > 0)
        session.wire.watch_output()
        client.read_on()
        assert len(await client.answer()) == 20_000_000
        await until(lambda: not session.wire.unsent())
        await asyncio.sleep(0.4)  # longer than the limit: no output is pending, so silence is allowed
        assert session.lost_with is None
        assert server.refusals("write_timeout") == 0


async def taken(client: Client, at_least: int) -> int:
    """Read at least so many bytes, then stop reading; return their number."""
    client.read_on()
    size = 0
    while size < at_least and (data := await client.reader.read(at_least)):
        size += len(data)
    client.stop_reading()
    return size


async def test_close_flushes_all_output() -> None:
    async with Server() as server:
        client = await server.client()
        client.stop_reading()
        client.send(frame(b"F", b"20000000") + frame(b"Q"))
        session = await server.session()
        await until(session.wire.is_blocked)
        client.read_on()
        assert len(await client.answer()) == 20_000_000
        assert await client.answer() == b""
        assert await client.ended() == "fin"


async def test_close_times_out_if_the_peer_does_not_read() -> None:
    async with Server(write_timeout_s=0.3) as server:
        client = await server.client()
        client.stop_reading()
        client.send(frame(b"F", b"20000000"))
        session = await server.session()
        await until(session.wire.is_blocked)
        session.wire.close()
        await until(lambda: session.lost_with is not None)
        assert session.lost_with is True
        assert server.refusals("write_timeout") == 1


async def test_close_times_out_if_the_peer_does_not_close() -> None:
    async with Server(write_timeout_s=1.0) as server:
        client = await server.client()
        session = await server.session()
        session.wire.close()
        assert await client.rest() == b""  # our FIN; the client keeps its side open
        await until(lambda: session.lost_with is not None)
        assert session.lost_with is False


async def test_blocked_session_is_resumed_after_the_peers_fin() -> None:
    async with Server() as server:
        client = await server.client()
        client.stop_reading()
        client.send(frame(b"F", str(ANSWER).encode()) * 200)
        client.writer.write_eof()
        await server.session()
        client.read_on()
        for _ in range(200):
            assert len(await client.answer()) == ANSWER
        assert await client.rest() == b""

"""Test one connection and its session: order of calls, closing, and errors."""

from __future__ import annotations

import asyncio
import logging

import pytest

from services.kit.session.session import Wire
from tests.kit.echo_edge import EchoSession, frame
from tests.kit.harness import Server, until


async def test_session_replies_and_closes_in_order() -> None:
    async with Server() as server:
        client = await server.client()
        client.send(frame(b"E", b"hello"))
        assert await client.answer() == b"hello"
        session = await server.session()
        assert server.value("penstock_connections", listener="here") == 1
        await client.close()
        await until(lambda: session.lost_with is not None)
        assert session.calls == ["received", "eof", "lost"]
        assert session.lost_with is False
        assert server.value("penstock_connections", listener="here") == 0
        assert server.value("penstock_connections_opened_total", listener="here") == 1


async def test_bytes_are_counted_both_ways() -> None:
    async with Server() as server:
        client = await server.client()
        client.send(frame(b"E", b"12345"))
        await client.answer()
        server.listener.tick(0.0)
        assert server.value("penstock_received_bytes_total", listener="here") == 10
        assert server.value("penstock_sent_bytes_total", listener="here") == 9


async def test_session_may_reply_after_the_peers_fin() -> None:
    async with Server() as server:
        client = await server.client()
        client.send(frame(b"W", b"0.2"))
        client.writer.write_eof()
        session = await server.session()
        await until(lambda: "eof" in session.calls)
        assert await client.answer() == b"done"
        assert await client.rest() == b""
        await until(lambda: session.lost_with is False)


async def test_reset_is_reported_once() -> None:
    async with Server() as server:
        client = await server.client()
        client.send(frame(b"E", b"x"))
        await client.answer()
        session = await server.session()
        client.reset()
        await until(lambda: session.lost_with is not None)
        assert session.calls == ["received", "lost"]
        assert session.lost_with is True


async def test_reset_after_fin_is_detected() -> None:
    """Check that a reset after FIN is detected.

    tmq.md 6.1: FIN settles only if no reset follows; nothing reads then, so the state has to be polled.
    """
    async with Server(lambda wire: Patient(wire)) as server:
        client = await server.client()
        client.writer.write_eof()
        session = await server.session()
        await until(lambda: "eof" in session.calls)
        assert not session.wire.is_reset()
        client.reset()
        await until(session.wire.is_reset)
        assert session.lost_with is None
        session.wire.close()
        await until(lambda: session.lost_with is not None)


class Patient(EchoSession):
    """A session that does not close at the peer's FIN."""

    def eof(self, now: float) -> None:
        self.calls.append("eof")


async def test_peer_error_is_counted_logged_and_closes_in_order(caplog: pytest.LogCaptureFixture) -> None:
    async with Server() as server:
        client = await server.client()
        client.send(frame(b"E", b"good") + frame(b"?"))
        assert await client.answer() == b"good"
        assert await client.ended() == "fin"
        assert server.refusals("bad_verb") == 1
        (record,) = [record for record in caplog.records if vars(record).get("action") == "refused"]
        assert vars(record)["reason"] == "bad_verb"
        assert vars(record)["detail"] == "verb b'?'"
        assert vars(record)["peer"].startswith("127.0.0.1:")
        assert vars(record)["conn"]


async def test_last_reply_arrives_while_the_peer_still_sends() -> None:
    """Check that the last reply arrives while the peer still sends.

    Closing with unread input would send a reset that overtakes the answer.
    """
    async with Server() as server:
        client = await server.client()
        client.send(frame(b"Q") + bytes(3_000_000))
        assert await client.answer() == b""
        assert await client.ended() == "fin"


async def test_refusals_are_all_counted_and_logged_once_per_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Check that refusals are all counted and logged once per connection (tmq.md 7.4)."""
    async with Server() as server:
        for _ in range(2):
            client = await server.client()
            client.send(frame(b"R") * 3 + frame(b"E", b"."))
            await client.answer()
            await client.close()
        assert server.refusals("not_today") == 6
        assert sum(vars(record).get("reason") == "not_today" for record in caplog.records) == 2


async def test_internal_error_resets_only_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    async with Server() as server:
        bystander, victim = await server.client(), await server.client()
        victim.send(frame(b"X"))
        assert await victim.ended() == "reset"
        bystander.send(frame(b"E", b"still here"))
        assert await bystander.answer() == b"still here"
        assert server.value("penstock_local_errors_total") == 1
        (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert record.exc_info is not None
        assert vars(record)["action"] == "session_failed"


async def test_failing_session_factory_is_an_internal_error() -> None:
    def broken(wire: Wire) -> EchoSession:
        raise RuntimeError("no session today")

    async with Server(broken) as server:
        client = await server.client()
        assert await client.ended() == "reset"
        assert server.value("penstock_local_errors_total") == 1


async def test_abort_sends_a_reset() -> None:
    async with Server() as server:
        client = await server.client()
        client.send(frame(b"A"))
        assert await client.ended() == "reset"
        session = await server.session()
        await until(lambda: session.lost_with is True)


async def test_wire_methods_do_not_raise_after_the_connection_is_lost() -> None:
    async with Server() as server:
        client = await server.client()
        session = await server.session()
        await client.close()
        await until(lambda: session.lost_with is not None)
        wire = session.wire
        for call in (wire.close, wire.abort, wire.pause, wire.resume, wire.reschedule):
            call()
        wire.write(b"late")
        assert wire.unsent() == 0
        assert wire.is_reset()
        assert session.calls.count("lost") == 1


async def test_paused_session_receives_nothing_until_it_resumes() -> None:
    async with Server() as server:
        client = await server.client()
        session = await server.session()
        session.wire.pause()
        client.send(frame(b"E", b"later"))
        await asyncio.sleep(0.05)  # long enough for bytes to be delivered, if there were any
        assert session.calls == []
        session.wire.resume()
        assert await client.answer() == b"later"
        assert session.calls[0] == "resumed"

"""Test listing and closing connections of a process."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

import pytest

from services.kit.net.connection_inspector import MAX_TEXT, ConnectionInspector
from tests.kit.authority import Authority
from tests.kit.calls import Calls
from tests.kit.echo_edge import EchoSession, frame
from tests.kit.harness import PATIENCE_S, Server, reset_on_close, until


def inspector(*ends: Server | Calls) -> ConnectionInspector:
    return ConnectionInspector(
        lambda: [end.listener if isinstance(end, Server) else end.dialler for end in ends]
    )


def connections(one: ConnectionInspector, **args: Any) -> list[dict[str, Any]]:
    return [dict(item) for item in one.connections(args)]


async def test_connection_is_described() -> None:
    async with Server() as server, Calls() as calls:
        session = await calls.call(server.port)
        assert await session.ask(frame(b"E", b"hello")) == b"hello"
        ours, theirs = connections(inspector(server)), connections(inspector(calls))
        (accepted,), (dialled,) = ours, theirs
        assert accepted.pop("ageMs") >= 0
        local = server.sessions[0].wire
        assert accepted == {
            **{"id": local.conn, "number": int(local.conn.partition(".")[2]), "listener": "here"},
            **{"peer": str(local.peer), "certificate": None, "name": None, "phase": "open"},
            **{"receivedOctets": 10, "sentOctets": 9, "unsentOctets": 0, "heldOctets": 0},
        }
        assert accepted["id"].startswith(f"{os.getpid():x}.")
        assert (dialled["listener"], dialled["peer"]) == ("out", f"127.0.0.1:{server.port}")
        assert (dialled["receivedOctets"], dialled["sentOctets"]) == (9, 10)
        session.wire.write(frame(b"E", b"part")[:6])
        await until(lambda: connections(inspector(server))[0]["heldOctets"] == 6)


async def test_octets_exclude_tls_overhead(authority: Authority) -> None:
    tls = authority.dialler("edge.example.org", common_name="x" * 64)
    async with Server(tls=authority.mutual()) as server, Calls(tls=tls) as calls:
        session = await calls.call(server.port)
        assert await session.ask(frame(b"E", b"hello")) == b"hello"
        both = connections(inspector(server, calls))
        assert {(item["listener"], item["receivedOctets"], item["sentOctets"]) for item in both} == {
            ("here", 10, 9),
            ("out", 9, 10),
        }
        assert {item["certificate"] for item in both} == {"x" * 64, "localhost"}
    assert len("x" * 64) < MAX_TEXT


async def test_connections_are_listed_by_number() -> None:
    """Check that connections of all listeners and diallers are listed by number.

    A page begins after the last one of the page before.
    """
    async with Server() as one, Server() as two, Calls() as calls:
        for server in (one, two, one, two):
            await calls.call(server.port)
        everyone = inspector(two, calls, one)
        numbers = [item["number"] for item in connections(everyone)]
        assert numbers == sorted(numbers)
        assert len(numbers) == 8
        assert [item["number"] for item in connections(everyone, after=numbers[3])] == numbers[4:]
        assert {item["listener"] for item in connections(everyone, listener="out")} == {"out"}
        assert connections(everyone, listener="none") == []


@pytest.mark.parametrize("after", [-1, "1", None, 1.5, True])
async def test_invalid_position_is_rejected(after: object) -> None:
    async with Server() as server:
        with pytest.raises(ValueError, match="after must be a whole number"):
            connections(inspector(server), after=after)


async def test_listing_tolerates_changes() -> None:
    """Check that listing tolerates changes: closed connections are left out, and newer ones may be."""
    async with Server() as server, Calls() as calls:
        sessions = [await calls.call(server.port) for _ in range(3)]
        items = inspector(server).connections({})
        first = next(iter(items))
        for session in sessions:
            session.wire.abort()
        await until(lambda: not server.listener.connections)
        await calls.call(server.port)
        assert list(items) == []
        assert first["phase"] == "open"


async def test_unnamed_connections_are_listed(authority: Authority) -> None:
    async with Server(tls=authority.listener()) as server:
        with socket.create_connection((server.host, server.port)):
            await until(lambda: [item["phase"] for item in connections(inspector(server))] == ["opening"])
            (item,) = connections(inspector(server))
            assert (item["certificate"], item["receivedOctets"]) == (None, 0)
            (closed,) = inspector(server).close({"id": item["id"]})
            assert closed["was"] == "reset"
            await until(lambda: not server.listener.connections)


async def test_listeners_are_described() -> None:
    async with Server() as server, Calls() as calls:
        await calls.call(server.port)
        about = inspector(server, calls).about()
        assert about == {
            "listeners": [{"name": "here", "address": f"127.0.0.1:{server.port}"}],
            "connections": 2,
        }


# --- close


async def test_operator_closes_a_connection_in_order(caplog: pytest.LogCaptureFixture) -> None:
    """Check that an operator closes a connection in order: output arrives, then FIN.

    It is logged and counted; other connections stay.
    """
    async with Server() as server:
        client, other = await server.client(), await server.client()
        session, _ = await server.session(0), await server.session(1)
        client.send(frame(b"F", b"100000"))
        await until(lambda: "received" in session.calls)
        (item,) = inspector(server).close({"id": session.wire.conn, "by": "eve" + "!" * 1000})
        assert item == {"id": session.wire.conn, "was": "closed"}
        assert len(await client.answer()) == 100_000
        assert await client.ended() == "fin"
        await client.close()
        await until(lambda: session.lost_with is not None)
        assert server.refusals("closed_by_operator") == 1
        (line,) = [line for line in caplog.records if getattr(line, "reason", "") == "closed_by_operator"]
        assert (line.conn, len(line.detail)) == (session.wire.conn, MAX_TEXT)  # type: ignore[attr-defined]
        other.send(frame(b"E", b"still here"))
        assert await other.answer() == b"still here"
        assert inspector(server).close({"id": session.wire.conn}) == []


async def test_second_close_resets_the_connection() -> None:
    """Check that a second close resets the connection: output could not be flushed to a peer that does not read."""
    async with Server() as server:
        client = await server.client()
        client.stop_reading()
        client.send(frame(b"F", b"30000000"))
        session = await server.session()
        await until(lambda: connections(inspector(server))[0]["unsentOctets"] > 0)
        assert inspector(server).close({"id": session.wire.conn}) == [
            {"id": session.wire.conn, "was": "closed"}
        ]
        (item,) = connections(inspector(server))
        assert item["phase"] == "closing"
        assert inspector(server).close({"id": session.wire.conn}) == [
            {"id": session.wire.conn, "was": "reset"}
        ]
        await until(lambda: not server.listener.connections)


async def test_tls_and_dialled_connections_can_be_closed(authority: Authority) -> None:
    """Check that TLS and dialled connections can be closed: both ends are notified in order."""
    async with Server(tls=authority.listener()) as server, Calls(tls=authority.dialler()) as calls:
        session = await calls.call(server.port)
        (item,) = connections(inspector(calls))
        assert inspector(server, calls).close({"id": item["id"]})[0]["was"] == "closed"
        await until(lambda: session.lost_with is not None)
        (theirs,) = server.sessions
        await until(lambda: "eof" in theirs.calls)
        theirs.wire.close()
        await until(lambda: theirs.lost_with is False)
        assert calls.value("penstock_refusals_total", reason="closed_by_operator") == 1


async def test_connection_without_transport_can_be_closed() -> None:
    """Check that a connection can be listed and closed before its transport exists."""
    async with Server() as server:
        found: list[Any] = []
        with socket.create_connection((server.host, server.port)):
            async with asyncio.timeout(PATIENCE_S):
                while not server.listener.connections:  # noqa: ASYNC110
                    await asyncio.sleep(0)
            found += connections(inspector(server))
            inspector(server).close({"id": found[0]["id"]})
            await until(lambda: not server.listener.connections)
        assert found[0]["phase"] in ("accepted", "open")


OURS = pytest.param(f"{os.getpid():x}.0", id="ours")  # test runners compare names


@pytest.mark.parametrize("identifier", ["", ".", "x", OURS, None, 7, "1.1"])
async def test_unknown_id_closes_nothing(identifier: object) -> None:
    async with Server() as server, Calls() as calls:
        await calls.call(server.port)
        assert inspector(server, calls).close({"id": identifier}) == []
        assert inspector(server, calls).close({}) == []
        assert server.refusals("closed_by_operator") == 0


async def test_failing_session_does_not_affect_others() -> None:
    class Fails(EchoSession):
        def lost(self, reset: bool) -> None:
            super().lost(reset)
            raise RuntimeError("asked for it")

    async with Server(Fails) as server:
        client = await server.client()
        session = await server.session()
        reset_on_close(client.socket)
        inspector(server).close({"id": session.wire.conn})
        await client.close()
        await until(lambda: not server.listener.connections)
        assert server.value("penstock_local_errors_total") == 1

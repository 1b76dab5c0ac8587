"""Test listing and closing connections of an edge through the store (docs/operations.md)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from services.store import Store
from services.store.processes.process_directory import Answers
from tests.live import until
from tests.servers import Server
from tests.tmq.conftest import MakeEdge
from tests.tmq.process import EdgeProgram

Found = dict[str, tuple[str, dict[str, object]]]  # address of a client -> its process and its description


def shown(place: tuple[str, int]) -> str:
    return f"{place[0]}:{place[1]}"


async def listed(store: Store, **args: object) -> Found:
    """Return the connections of all processes; each must answer."""
    answers = await answered(store, args)
    return {str(item["peer"]): (answer.process, item) for answer in answers.answers for item in answer.items}


async def answered(store: Store, args: dict[str, object]) -> Answers:
    async def asked() -> Answers | None:
        found = await store.processes.inquire("connections", args, 10.0, edge="tmq")
        return found if found.answers and not found.silent else None

    found: Answers = await until(asked)
    return found


async def test_connections_of_an_edge_are_listed(make_edge: MakeEdge) -> None:
    edge = await make_edge()
    client, _ = await edge.client(), await edge.client()
    assert await client.create(b"orders") is not None
    found = await listed(edge.tools)
    assert len(found) == 2
    (process, item) = found[shown(client.address)]
    assert (item["phase"], item["certificate"]) == ("open", None)
    assert item["receivedOctets"] == len(b"\0\0\0\0\x06orders")
    assert process.startswith("tmq-")
    (one,) = await edge.tools.processes.running()
    assert one.topics == {"connections", "close"}
    places = {name: shown(place) for name, place in edge.places.items()}

    async def known() -> bool:
        return [dict(one.listeners) for one in await edge.tools.processes.running()] == [places]

    await until(known)


async def test_operator_closes_a_connection(make_edge: MakeEdge) -> None:
    """Check that closing a connection returns the messages of its transaction, as any end does."""
    edge = await make_edge()
    client, other = await edge.client(), await edge.client()
    process, item = (await listed(edge.tools))[shown(client.address)]
    closing = {"id": item["id"], "by": "eve"}
    (answer,) = (await edge.tools.processes.inquire("close", closing, 10.0, process=process)).answers
    assert answer.items == [{"id": item["id"], "was": "closed"}]
    assert await client.ended() == "fin"
    client.close()
    await until(lambda: edge.refusals()["closed_by_operator"] == 1)
    (line,) = edge.log.events("refused", reason="closed_by_operator")
    assert (line.conn, line.detail) == (item["id"], "eve")  # type: ignore[attr-defined]
    (answer,) = (await edge.tools.processes.inquire("close", closing, 10.0)).answers
    assert answer.items == [], "the connection is already closed"
    assert list(await listed(edge.tools)) == [shown(other.address)]


async def test_each_worker_lists_its_own_connections(server: Server, tmp_path: Path) -> None:
    """Check that each worker lists its connections, and that any can be closed, also after a worker was killed."""
    tools = Store(server.url, "test")
    try:
        async with EdgeProgram(server.url, tmp_path, workers=2) as program:
            place = shown(program.place("document"))

            async def both_listen() -> bool:
                """Return whether both workers accept clients and answer inquiries."""
                found = await tools.processes.running()
                listen = [dict(one.listeners).get("document") == place for one in found]
                return len(found) == 2 and all(listen) and all("connections" in one.topics for one in found)

            await until(both_listen)
            clients = [await program.client() for _ in range(12)]
            running, found = await tools.processes.running(), await listed(tools)
            assert {process for process, _ in found.values()} == {one.name for one in running}
            assert len(found) == 12
            for client in clients[:4]:
                process, item = found[shown(client.address)]
                answers = await tools.processes.inquire("close", {"id": item["id"]}, 10.0)
                assert [a.process for a in answers.answers if a.items] == [process]
                assert await client.ended() == "fin"
            victim = running[0]
            os.kill(victim.pid, signal.SIGKILL)
            late = await tools.processes.inquire("connections", {}, 0.5)
            assert [one.name for one in late.silent] == [victim.name]
            assert [answer.process for answer in late.answers] == [running[1].name]
            await until(lambda: another(tools, {one.name for one in running}))
    finally:
        await tools.close()


async def another(store: Store, known: set[str]) -> bool:
    """Return whether a worker that replaces a dead one answers inquiries, too."""
    answers = (await store.processes.inquire("connections", {}, 0.5)).answers
    return any(answer.process not in known for answer in answers)


async def test_draining_edge_is_listed_until_it_exits(server: Server, tmp_path: Path) -> None:
    tools = Store(server.url, "test")
    try:
        async with EdgeProgram(server.url, tmp_path, "drain.grace_s=3.0") as program:

            async def health() -> bool:
                host, port = (program.events("health_listening")[0][name] for name in ("host", "port"))
                return [one.health for one in await tools.processes.running()] == [f"{host}:{port}"]

            await until(health)
            program.process.send_signal(signal.SIGTERM)

            async def drains() -> bool:
                return [one.unready for one in await tools.processes.running()] == ["accepting: draining"]

            await until(drains)
            assert await program.ended() == 0
            assert await tools.processes.running() == []
    finally:
        await tools.close()

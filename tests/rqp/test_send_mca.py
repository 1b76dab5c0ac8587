"""`penstock rqp send` over RQP/MCA: it waits for a peer's confirmation (docs/cli.md, rqp send; rqp_mca.md 3)."""

from __future__ import annotations

from pathlib import Path

from protos.rqp_mca import AvailableConfirm, QueueConfirm, QueueRequest
from tests.live import until
from tests.rqp.conftest import NewServer, Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import UNRELIABLE
from tests.rqp.mca.failing import sending_edge
from tests.rqp.mca.peer import McaPeer, peer_settings
from tests.rqp.program import EdgeProgram
from tests.rqp.send_command import SendCommand, sent
from tests.servers import Server

TO_7 = ("--queue-id", "7", "--wait")
CONFIRMED = {"queue": "away", "state": "confirmed"}
PATIENT = {"data_timeout_s": 20.0, "availability_timeout_s": 10.0}


async def two_systems(new_server: NewServer, start: Start, **remote: object) -> tuple[LiveEdge, Server]:
    """Start two systems with a store each: one has queue 7, the other a transmission queue `away` for it."""
    west, east = await new_server(), await new_server()
    there = await start(west)
    await there.numbered("goal", 7)
    here = await start(east, mca={"peers": {"west": {"addresses": [there.address]}}})
    await here.remote("away", **remote)
    return there, east


async def test_from_one_system_to_another(new_server: NewServer, start: Start) -> None:
    """Check that a message is in the other system's queue when the command ends."""
    there, east = await two_systems(new_server, start)
    goal = await there.tools.catalogue.find("goal")
    for number in range(3):
        ended = await sent(east, *TO_7, "--reliable", f"m{number}")
        assert (ended.code, ended.output) == (0, CONFIRMED), ended
        assert await there.bodies(goal) == [b"m%d" % each for each in range(number + 1)]


async def test_unreliable_message_is_sent(new_server: NewServer, start: Start) -> None:
    """Check that an unreliable message is removed once sent, without a confirmation (3)."""
    there, east = await two_systems(new_server, start)
    ended = await sent(east, *TO_7, "--unreliable", "perhaps")
    assert (ended.code, ended.output) == (0, {"queue": "away", "state": "sent"}), ended
    goal = await there.tools.catalogue.find("goal")
    await until(lambda: there.bodies(goal))


async def test_confirmations_of_other_messages_do_not_count(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that confirmations of other messages before and behind it do not count (3.3)."""
    edge = await start(server, mca={"peers": peer_settings(peer, window=9), **PATIENT})
    queue = await edge.remote("away")
    await edge.put(queue, b"before", b"before too")
    async with SendCommand(server, *TO_7, "mine") as command:
        call = await peer.reserved()
        assert await call.bodies(3) == [b"before", b"before too", b"mine"]
        await edge.put(queue, b"behind")
        call.confirm(2)
        assert await call.body() == b"behind"
        await until(lambda: _acked(edge, 2))
        assert command.waits
        call.confirm(1)
        ended = await command.ended()
        assert (ended.code, ended.output) == (0, CONFIRMED), ended
        call.confirm(1)
    await until(lambda: edge.is_empty(queue))


async def _acked(edge: LiveEdge, number: int) -> bool:
    stats = await edge.stats(await edge.tools.catalogue.find("away"))
    return bool(stats["acked"] == number)


async def test_wait_reports_a_peer_that_does_not_confirm(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that the wait reports a peer that does not confirm, by the queue's condition (3.1).

    The message stays and may still be delivered.
    """
    edge = await start(server, mca={"peers": peer_settings(peer), "availability_timeout_s": 0.1})
    queue = await edge.remote("away")
    async with SendCommand(server, *TO_7, "--timeout", "4", "mine") as command:
        call = await peer.reserved()
        assert await call.body() == b"mine"
        await call.ended()  # data_timeout_s
        call = await peer.reserved()
        assert await call.body() == b"mine"
        ended = await command.ended()
    assert ended.code == 5
    assert ended.output == {"queue": "away", "state": "waits", "reason": ended.complaint["error"]}
    assert ended.complaint["error"] in ("data_timeout", "no_receiver")
    assert ended.complaint["message"].endswith("not confirmed within 4 s: the message is still in away")
    stats = await edge.stats(queue)
    assert stats["ready"] + stats["in_flight"] == 1


async def test_wait_reports_a_missing_receiver(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that the wait reports a missing receiver.

    An UNRELIABLE message is dead-lettered, a RELIABLE one stays (3).
    """
    edge = await sending_edge(server, start, peer, availability_timeout_s=0.05)
    queue = await edge.remote("away")
    ended = await sent(server, *TO_7, "--unreliable", "lost")
    assert (ended.code, ended.output["state"], ended.complaint["error"]) == (1, "dead", "no_receiver"), ended
    assert ended.complaint["message"].endswith("no_receiver: no peer has queue 7")
    assert [letter.body for letter in await edge.dead(queue)] == [b"lost"]
    ended = await sent(server, *TO_7, "--timeout", "2", "kept")
    assert (ended.code, ended.output["state"], ended.complaint["error"]) == (5, "waits", "no_receiver"), ended
    assert "no peer has queue 7; not confirmed within 2 s" in ended.complaint["message"]


async def test_error_ends_the_wait(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that an error ends the wait of a one-shot send (3.1).

    The message stays first, and is sent when that is possible.
    """
    edge = await sending_edge(server, start, peer, availability_timeout_s=1.0)
    queue = await edge.remote("away")
    for number in (1, 2):  # the second is put in when the queue's condition shows the error already
        ended = await sent(server, *TO_7, f"m{number}")
        assert ended.code == 5
        assert ended.output == {"queue": "away", "state": "waits", "reason": "no_receiver"}
        assert ended.complaint["message"] == (
            "no peer has queue 7: the message stays in away and will be sent later"
        )
    while (call := await peer.asked()).is_over.is_set():
        pass
    call.say(AvailableConfirm(7))
    await call.next(QueueRequest)
    call.say(QueueConfirm(7))
    for number in (1, 2):
        assert await call.body() == b"m%d" % number
        call.confirm()
    await until(lambda: edge.is_empty(queue))


async def test_wait_survives_a_killed_edge(
    server: Server, start: Start, peer: McaPeer, tmp_path: Path
) -> None:
    """Check that the wait survives a killed edge: another one delivers, and its confirm counts (3.2)."""
    settings = {
        "mca": {"peers": peer_settings(peer), **PATIENT},
        "outbox": {"lease_s": 1.5, "renew_s": 0.3},
        "store": {"session_timeout_s": 1.0, "heartbeat_s": 0.2, "sweep_s": 0.2},
    }
    edge = await start(server)
    await edge.service.stop_taking()  # only programs remain to own it
    queue = await edge.remote("away", spec={"visibilityTimeout": "100ms"})
    async with (
        EdgeProgram(server.url, tmp_path, settings) as first,
        SendCommand(server, *TO_7, "mine") as command,
    ):
        call = await peer.reserved()
        assert await call.body() == b"mine"
        async with EdgeProgram(server.url, tmp_path, settings):
            await first.kill()
            again = await peer.reserved()
            assert await again.body() == b"mine"
            assert command.waits
            again.confirm()
            ended = await command.ended()
            assert (ended.code, ended.output) == (0, CONFIRMED), ended
    assert await edge.is_empty(queue)


async def test_both_kinds_are_sent_through_one_queue(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that both kinds are sent through one queue (3: {queue_id, type, body})."""
    edge = await start(server, mca={"peers": peer_settings(peer, window=9), **PATIENT})
    await edge.remote("away")
    async with SendCommand(server, *TO_7, "--unreliable", "perhaps") as command:
        call = await peer.reserved()
        assert await call.body(UNRELIABLE) == b"perhaps"
        assert (await command.ended()).output["state"] == "sent"
    async with SendCommand(server, *TO_7, "--reliable", "surely") as command:
        assert await call.body() == b"surely"
        call.confirm()
        assert (await command.ended()).output["state"] == "confirmed"

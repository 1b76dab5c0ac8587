"""RQP edges as programs: SIGTERM and several workers (rqp_mca.md 3.2, 3.6)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from protos.rqp_mca import AvailableConfirm, AvailableRequest, QueueConfirm, QueueRequest
from tests.live import until
from tests.rqp.conftest import Start
from tests.rqp.mca.client import Client
from tests.rqp.mca.peer import McaPeer, peer_settings
from tests.rqp.program import EdgeProgram
from tests.servers import Server, free_port


async def test_sigterm_waits_for_confirmations(
    server: Server, start: Start, peer: McaPeer, tmp_path: Path
) -> None:
    """Check that SIGTERM waits for confirmations of messages in flight (3.6).

    Others return to their places, and the queue has no owner.
    """
    edge = await start(server)
    queue = await edge.declare(
        "away", remote={"protocol": "rqp-mca", "queueId": 7, "peers": ["p0"]}, paused=True
    )
    settings = {"mca": {"peers": peer_settings(peer), "data_timeout_s": 20.0}}
    async with EdgeProgram(server.url, tmp_path, settings) as program:
        await edge.service.stop_taking()  # only the program remains to own it
        await edge.replace_remote("away", peers=["p0"])
        await edge.put(queue, b"one", b"two")
        call = await peer.reserved()
        assert await call.body() == b"one"
        program.process.terminate()
        await until(lambda: edge.bodies(queue))
        call.confirm()
        await call.ended()
        assert await program.ended() == 0
    assert await edge.bodies(queue) == [b"two"]
    stats = await edge.stats(queue)
    assert (stats["in_flight"], stats["owned_by"]) == (0, "")


async def test_each_queue_is_owned_by_one_worker(
    server: Server, start: Start, peer: McaPeer, tmp_path: Path
) -> None:
    """Check that each queue is owned by one worker (3.2)."""
    edge = await start(server)
    settings = {"mca": {"peers": peer_settings(peer)}, "workers": 2}
    async with EdgeProgram(server.url, tmp_path, settings):
        await edge.service.stop_taking()
        queues = [await edge.remote(f"away{number}", number, peers=["p0"]) for number in range(4)]
        for queue in queues:
            await edge.put(queue, b"hello")
        for _ in queues:
            call = await peer.call()
            number = (await call.next(AvailableRequest)).queue_id
            call.say(AvailableConfirm(number))
            await call.next(QueueRequest)
            call.say(QueueConfirm(number))
            assert await call.body() == b"hello"
            call.confirm()
        for queue in queues:
            await until(partial(edge.is_empty, queue))
    assert len(peer.calls) == 4


async def test_queue_of_a_killed_program_is_free_at_once(
    server: Server, start: Start, tmp_path: Path
) -> None:
    """Check that a queue of a killed program is free at once (2.3).

    Its assignment would last a minute, but processes of this machine detect its death.
    """
    edge = await start(server)
    await edge.numbered("orders", 1)
    await edge.numbered("other", 2, exclusive=False)
    port = free_port()
    async with EdgeProgram(server.url, tmp_path, {"listeners": {"mca": {"port": port}}}) as doomed:
        holder, client = await Client.connect(("127.0.0.1", port)), await edge.client()
        await holder.request(1)
        assert not await client.is_assigned(1, 2)
        await doomed.kill()
        await until(lambda: client.is_assigned(1, 2), 10.0)
        holder.close()

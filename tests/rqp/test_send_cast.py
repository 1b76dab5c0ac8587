"""`penstock rqp send` over RQP/cast: it waits for SUCCESS (docs/cli.md, rqp send; rqp_cast.md 4)."""

from __future__ import annotations

import pytest

from protos.rqp_cast import Quality, Result
from tests.live import until
from tests.rqp.cast.hands import HandReceiver
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import keyed, remote
from tests.rqp.conftest import NewServer
from tests.rqp.send_command import SendCommand, sent
from tests.servers import Server

TO_7 = ("--key", "7", "--wait")
CONFIRMED = {"queue": "out", "state": "confirmed"}


@pytest.mark.parametrize(("how", "state"), [("--reliable", "confirmed"), ("--unreliable", "sent")])
async def test_from_one_system_to_another(
    new_server: NewServer, server: Server, machines: Machines, how: str, state: str
) -> None:
    """Check that a certain message is in the other system's queue when the command ends (3)."""
    there = await machines.receiver(server=await new_server())
    here = await machines.sender()
    goal = await keyed(there)
    await remote(here)
    ended = await sent(server, *TO_7, how, "hello")
    assert (ended.code, ended.output) == (0, {"queue": "out", "state": state}), ended
    await until(lambda: there.bodies(goal))
    assert await there.bodies(goal) == [b"hello"]


async def test_wait_follows_a_message_moved_to_the_end(
    server: Server, machines: Machines, receiver: HandReceiver
) -> None:
    """Check that the wait follows a message moved to the end after no answer or FAILURE (4.1, 4.2).

    SUCCESS of other messages does not count.
    """
    edge = await machines.sender(t_wait1_s=0.3)
    queue = await remote(edge)
    async with SendCommand(server, *TO_7, "--timeout", "60", "mine") as command:
        await receiver.question()  # not answered
        await edge.put(queue, b"another")
        assert await receiver.receive(Result.FAILURE) in (b"mine", b"another")
        got: list[bytes] = []
        while b"mine" not in got:
            assert command.waits, "the end of another message was taken for its own"
            approval = await receiver.chosen()
            got.append((await receiver.data())[12:])
            assert approval.msg_type is Quality.HIGH_QUALITY
            await receiver.confirm(approval, Result.SUCCESS)
        ended = await command.ended()
        assert (ended.code, ended.output) == (0, CONFIRMED), ended


async def test_wait_reports_a_message_always_refused(
    server: Server, machines: Machines, receiver: HandReceiver
) -> None:
    """Check that the wait reports a message that is always refused: after `max_attempts` it is dead-lettered (4.2)."""
    edge = await machines.sender(max_attempts=2)
    queue = await remote(edge)
    async with SendCommand(server, *TO_7, "mine") as command:
        for _ in range(2):
            assert await receiver.receive(Result.FAILURE) == b"mine"
        ended = await command.ended()
    assert (ended.code, ended.output["state"], ended.complaint["error"]) == (1, "dead", "unconfirmed"), ended
    assert ended.complaint["message"].endswith("2 times FAILURE, the last from 127.0.0.2")
    assert [letter.reason for letter in await edge.dead(queue)] == ["unconfirmed"]


async def test_wait_reports_a_missing_confirmation(
    server: Server, machines: Machines, receiver: HandReceiver
) -> None:
    """Check that the wait reports a missing confirmation after T_WAIT4, by the queue's condition (4.2)."""
    edge = await machines.sender(t_wait4_s=0.5)
    queue = await remote(edge)
    async with SendCommand(server, *TO_7, "--timeout", "4", "mine") as command:
        await receiver.chosen()
        await receiver.data()
        await until(lambda: edge.has_condition(queue, "not_confirmed: "))
        ended = await command.ended()
    assert ended.code == 5
    assert ended.complaint["error"] in ("not_confirmed", "no_answer")
    assert ended.complaint["message"].endswith("not confirmed within 4 s: the message is still in out")
    stats = await edge.stats(queue)
    assert stats["ready"] + stats["in_flight"] == 1


async def test_error_ends_the_wait(server: Server, machines: Machines, receiver: HandReceiver) -> None:
    """Check that an error ends the wait: without an answer the message stays, to be sent later (4.1)."""
    edge = await machines.sender(t_wait1_s=0.3)
    queue = await remote(edge)
    ended = await sent(server, *TO_7, "mine")
    assert ended.code == 5
    assert ended.output == {"queue": "out", "state": "waits", "reason": "no_answer"}
    assert ended.complaint["message"].endswith(": the message stays in out and will be sent later")
    assert await receiver.receive(Result.SUCCESS) == b"mine"
    await until(lambda: edge.is_empty(queue))

"""penstock rqp send over RQP/cast: SUCCESS is what is waited for (docs/cli.md, rqp send; rqp_cast.md 4)."""

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
    """3: a certain message is in the queue there when the command ends."""
    there = await machines.receiver(server=await new_server())
    here = await machines.sender()
    goal = await keyed(there)
    await remote(here)
    ended = await sent(server, *TO_7, how, "hello")
    assert (ended.code, ended.told) == (0, {"queue": "out", "state": state}), ended
    await until(lambda: there.bodies(goal))
    assert await there.bodies(goal) == [b"hello"]


async def test_it_is_followed_when_it_moves_to_the_end(
    server: Server, machines: Machines, receiver: HandReceiver
) -> None:
    """4.1, 4.2: nobody answers, then FAILURE: each time it goes behind the others, whose SUCCESS is not its."""
    edge = await machines.sender(t_wait1_s=0.3)
    queue = await remote(edge)
    async with SendCommand(server, *TO_7, "--timeout", "60", "mine") as command:
        await receiver.question()  # not answered
        await edge.put(queue, b"another")
        assert await receiver.receive(Result.FAILURE) in (b"mine", b"another")
        got: list[bytes] = []
        while b"mine" not in got:
            assert command.waits, "another message's end was taken for its own"
            approval = await receiver.chosen()
            got.append((await receiver.data())[12:])
            assert approval.msg_type is Quality.HIGH_QUALITY
            await receiver.confirm(approval, Result.SUCCESS)
        ended = await command.ended()
        assert (ended.code, ended.told) == (0, CONFIRMED), ended


async def test_a_receiver_that_says_failure_every_time(
    server: Server, machines: Machines, receiver: HandReceiver
) -> None:
    """4.2: `max_attempts` times: it is in the dead letters, and the command says so."""
    edge = await machines.sender(max_attempts=2)
    queue = await remote(edge)
    async with SendCommand(server, *TO_7, "mine") as command:
        for _ in range(2):
            assert await receiver.receive(Result.FAILURE) == b"mine"
        ended = await command.ended()
    assert (ended.code, ended.told["state"], ended.complaint["error"]) == (1, "dead", "unconfirmed"), ended
    assert ended.complaint["message"].endswith("2 times FAILURE, the last from 127.0.0.2")
    assert [letter.reason for letter in await edge.dead(queue)] == ["unconfirmed"]


async def test_a_receiver_that_does_not_confirm(
    server: Server, machines: Machines, receiver: HandReceiver
) -> None:
    """4.2: T_WAIT4 over: it stays, and the queue's condition says why."""
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


async def test_an_error_ends_the_waiting(server: Server, machines: Machines, receiver: HandReceiver) -> None:
    """4.1: nobody answers. The message stays, and is sent when somebody does."""
    edge = await machines.sender(t_wait1_s=0.3)
    queue = await remote(edge)
    ended = await sent(server, *TO_7, "mine")
    assert ended.code == 5
    assert ended.told == {"queue": "out", "state": "waits", "reason": "no_answer"}
    assert ended.complaint["message"].endswith(": the message stays in out and will be sent later")
    assert await receiver.receive(Result.SUCCESS) == b"mine"
    await until(lambda: edge.is_empty(queue))

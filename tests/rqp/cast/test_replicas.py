"""Replicas of different speed that receive on one store (rqp_cast.md 3.1, 3.2)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from protos.rqp_cast import Result
from tests.rqp.cast.hands import HandSender
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import is_reserved, keyed
from tests.rqp.cast.test_killed import REPLICA, program
from tests.rqp.program import EdgeProgram
from tests.servers import Server

NewServer = Callable[[], Awaitable[Server]]
OTHER_KEY = 8


@contextmanager
def standing_still(edge: EdgeProgram) -> Iterator[None]:
    os.kill(edge.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(edge.process.pid, signal.SIGCONT)


async def test_late_replica_does_not_reserve_the_queue(
    new_server: NewServer, machines: Machines, tmp_path: Path
) -> None:
    """Check that a late replica does not reserve the queue: the question's session has ended (3.2)."""
    server = await new_server()
    looker = await machines.receiver(server=server)
    goal, _ = await keyed(looker), await keyed(looker, "other", OTHER_KEY)
    cast = {"sends": False, "t_wait1_s": 30.0}
    async with program(server, machines.net, tmp_path, REPLICA, **cast) as slow:
        with HandSender(machines.net) as hands:
            with standing_still(slow):
                hands.ask(host=REPLICA)
                assert await hands.send(b"hello") is Result.SUCCESS
            hands.ask(OTHER_KEY, host=REPLICA)
            assert (await hands.answer()).key == OTHER_KEY
        assert not await is_reserved(looker, goal)


async def test_session_of_another_sender_does_not_answer_a_question(
    new_server: NewServer, machines: Machines, tmp_path: Path
) -> None:
    """Check that a session of another sender does not mark a question as answered (3.2)."""
    server = await new_server()
    looker = await machines.receiver(server=server)
    await keyed(looker)
    cast = {"sends": False, "t_wait1_s": 30.0}
    async with program(server, machines.net, tmp_path, REPLICA, **cast) as slow:
        with HandSender(machines.net) as hands, HandSender(machines.net, "127.0.0.5") as others:
            with standing_still(slow):
                hands.ask(host=REPLICA)
                assert await others.send(b"hello") is Result.SUCCESS
            assert (await hands.answer()).key == 7


async def test_question_older_than_t_wait1_is_not_answered(
    new_server: NewServer, machines: Machines, tmp_path: Path
) -> None:
    """Check that a question older than T_WAIT1 is not answered: its sender no longer waits (3.1, 3.2)."""
    server = await new_server()
    looker = await machines.sender("127.0.0.9", server, asks=(), sends=False)
    goal, _ = await keyed(looker), await keyed(looker, "other", OTHER_KEY)
    async with program(server, machines.net, tmp_path, REPLICA, sends=False, t_wait1_s=0.3) as slow:
        with HandSender(machines.net) as hands:
            with standing_still(slow):
                hands.ask(host=REPLICA)
                await asyncio.sleep(0.4)  # let it expire
            hands.ask(OTHER_KEY, host=REPLICA)
            assert (await hands.answer()).key == OTHER_KEY
        assert not await is_reserved(looker, goal)

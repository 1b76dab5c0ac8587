"""Whom a sending agent of RQP/cast asks: `.rqprc`, names, groups (rqp_cast.md 1.1)."""

from __future__ import annotations

from pathlib import Path

from protos.rqp_cast import Result
from tests.live import until
from tests.rqp.cast_hands import HandReceiver
from tests.rqp.cast_machines import Machines
from tests.rqp.cast_net import THERE, remote
from tests.rqp.live import LiveEdge


class Resolver:
    """Names and what they mean now."""

    def __init__(self, **names: list[str]) -> None:
        self.names = names
        self.asked: list[str] = []

    async def __call__(self, name: str) -> list[str]:
        self.asked.append(name)
        if name not in self.names:
            raise OSError("no such name")
        return self.names[name]


async def sends(edge: LiveEdge, receiver: HandReceiver, body: bytes) -> None:
    assert await receiver.receive(Result.SUCCESS) == body


async def test_the_file_is_read_again_when_it_changes(
    machines: Machines, receiver: HandReceiver, tmp_path: Path
) -> None:
    """1.1: whoever stands in it at the time of the question is asked."""
    file = machines.net.rqprc(tmp_path / ".rqprc", ["127.0.0.3"])
    edge = await machines.sender(asks=(), rqprc=file, t_wait1_s=0.1)
    queue = await remote(edge)
    with HandReceiver(machines.net, "127.0.0.3") as first:
        await edge.put(queue, b"hello")
        await first.question()
        assert receiver.asked() == 0
        machines.net.rqprc(file, [THERE])
        await sends(edge, receiver, b"hello")
        await until(lambda: edge.is_empty(queue))
        first.asked()
        await edge.put(queue, b"more")
        await sends(edge, receiver, b"more")
        assert first.asked() == 0


async def test_garbage_in_the_file(machines: Machines, receiver: HandReceiver, tmp_path: Path) -> None:
    """1.1: a line that names no machine is told with its number and skipped; the others count."""
    lines = [b"# machines", b"\xff\xfe\x00", b"two words", b"::1", b"10.0.0.999", b"host:99999", b"", b"a..b"]
    file = tmp_path / ".rqprc"
    file.write_bytes(b"\n".join([*lines, machines.net.at(THERE).encode() + b" # there"]))
    edge = await machines.sender(asks=(), rqprc=file)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await sends(edge, receiver, b"hello")
    told = [line.line for line in edge.log.events("rqprc_line_skipped")]  # type: ignore[attr-defined]
    assert told == [2, 3, 4, 5, 6, 8]


async def test_a_file_that_is_not_there_yet(
    machines: Machines, receiver: HandReceiver, tmp_path: Path
) -> None:
    """1.1: nobody is asked, which is told; once it is there, its machines are. What it said last counts on."""
    file = tmp_path / ".rqprc"
    edge = await machines.sender(asks=(), rqprc=file, t_wait1_s=0.1)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await until(lambda: edge.has_condition(queue, "no machine answers"))
    assert len(edge.log.events("rqprc_unread")) == 1
    machines.net.rqprc(file, [THERE])
    await sends(edge, receiver, b"hello")
    file.unlink()
    await edge.put(queue, b"more")
    await sends(edge, receiver, b"more")


async def test_names_are_resolved_at_the_question(machines: Machines, receiver: HandReceiver) -> None:
    """1.1: all addresses of a name are asked; one that means nothing keeps nobody else from being asked."""
    resolver = Resolver(there=[THERE, "127.0.0.3", "::1"])
    edge = await machines.sender(
        asks=("nowhere", "there"), edge={"look_up": resolver, "lookup_s": 0.2}, t_wait1_s=0.1
    )
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    with HandReceiver(machines.net, "127.0.0.3") as second:
        await second.question()
        await sends(edge, receiver, b"hello")
        await until(lambda: edge.is_empty(queue))
        resolver.names["there"] = ["127.0.0.3"]
        second.asked()
        await edge.put(queue, b"moved")
        await second.question()
    assert edge.log.events("name_not_found", name_asked="nowhere")


async def test_an_answer_counts_from_any_address_of_a_name(
    machines: Machines, receiver: HandReceiver
) -> None:
    """1.1: `.rqprc` names a machine, and the machine answers from the address that the name has now."""
    resolver = Resolver(there=["127.0.0.3"])
    edge = await machines.sender(asks=("there",), edge={"look_up": resolver, "lookup_s": 0.05}, t_wait1_s=0.1)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await until(lambda: edge.has_condition(queue, "no machine answers"))
    resolver.names["there"] = [THERE]
    await sends(edge, receiver, b"hello")

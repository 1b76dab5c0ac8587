"""The machines that a sending agent of RQP/cast asks: `.rqprc`, names, groups (rqp_cast.md 1.1)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from protos.rqp_cast import Host, Result
from services.kit.config.layers import SettingsError, read_flags
from services.kit.config.settings import load
from services.rqp.cast.machines import machines as machines_module
from services.rqp.cast.sending import findreceiver
from services.rqp.edge import EDGE
from services.store.model.peer import PeerSpec
from services.store.model.rqp_binding import Protocol
from tests.live import until
from tests.rqp.cast.hands import HandReceiver
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import THERE, agent, failed, remote, unheard
from tests.rqp.live import LiveEdge


class Resolver:
    """A resolver of names with changing addresses."""

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


async def test_file_is_reread_when_it_changes(
    machines: Machines, receiver: HandReceiver, tmp_path: Path
) -> None:
    """Check that the file is read again when it changes: machines listed at the question are asked (1.1)."""
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


async def test_one_machine_cannot_block_answers_of_others(
    machines: Machines, receiver: HandReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that one machine cannot block answers of others (1.1, 3.1).

    Its silent connections are limited; others are accepted.
    """
    monkeypatch.setattr(findreceiver, "MAX_OF_ADDRESS", 3)
    with HandReceiver(machines.net, "127.0.0.3") as silent:
        edge = await machines.sender(asks=(THERE, silent.host), t_wait1_s=30.0)
        queue = await remote(edge)
        await edge.put(queue, b"hello")
        await receiver.question()
        port = machines.net.findreceiver_port
        kept = [await silent.connect(port) for _ in range(3)]
        assert await silent.is_closed(await silent.connect(port))
        assert unheard(edge, "too_many_connections") == 1
        kept[0].close()
        await until(lambda: edge.value("penstock_rqp_cast_faults_total", reason="truncated") == 1)
        await silent.offer(key=8, address=silent.host)
        await until(lambda: unheard(edge, "not_asked") == 1)
        await receiver.offer()
        approval = await receiver.approval()
        assert (await receiver.data())[12:] == b"hello"
        await receiver.confirm(approval, Result.SUCCESS)
        await until(lambda: edge.is_empty(queue))


@pytest.mark.parametrize("address", ["127.255.255.255", "255.255.255.255", "224.0.0.1", "0.0.0.0"])
def test_broadcast_address_in_settings_is_refused(address: str) -> None:
    """Check that a broadcast address in settings is refused (1.1).

    Answers would come from addresses that are not listed.
    """
    flags = read_flags([f'edges.rqp.cast.peers.x.addresses=["10.0.0.7", "{address}:11312"]'])
    fault = r"edges.rqp.cast.peers.x.addresses.1: must be the address of one machine, not a broadcast.*the command line"
    with pytest.raises(SettingsError, match=fault):
        load(None, flags).edge(EDGE)


async def test_broadcast_address_in_the_file_is_logged(machines: Machines, tmp_path: Path) -> None:
    """Check that a broadcast address in the file is logged and other lines count (1.1)."""
    file = machines.net.rqprc(tmp_path / ".rqprc", ["127.255.255.255", "not a machine", THERE])
    edge = await machines.sender(asks=(), rqprc=file)
    (event,) = await until(lambda: edge.log.events("cast_address_of_many"))
    assert (
        "127.255.255.255 is a broadcast, multicast or wildcard address: list each machine by its own address"
        in event.getMessage()
    )
    assert len(edge.log.events("rqprc_line_skipped", line=2)) == 1


async def test_file_may_be_in_the_home_folder(
    machines: Machines, receiver: HandReceiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the file may be in the home folder, by `~` in settings (1.1)."""
    monkeypatch.setenv("HOME", str(tmp_path))
    machines.net.rqprc(tmp_path / ".rqprc", [THERE])
    edge = await machines.sender(asks=(), rqprc="~/.rqprc")
    await edge.put(await remote(edge), b"hello")
    await sends(edge, receiver, b"hello")


async def test_bad_lines_of_the_file_are_skipped(
    machines: Machines, receiver: HandReceiver, tmp_path: Path
) -> None:
    """Check that bad lines of the file are logged with their number and skipped (1.1)."""
    lines = [b"# machines", b"\xff\xfe\x00", b"two words", b"::1", b"10.0.0.999", b"host:99999", b"", b"a..b"]
    file = tmp_path / ".rqprc"
    file.write_bytes(b"\n".join([*lines, machines.net.at(THERE).encode() + b" # there"]))
    edge = await machines.sender(asks=(), rqprc=file)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await sends(edge, receiver, b"hello")
    results = [line.line for line in edge.log.events("rqprc_line_skipped")]  # type: ignore[attr-defined]
    assert results == [2, 3, 4, 5, 6, 8]


async def test_missing_file_is_logged_and_read_later(
    machines: Machines, receiver: HandReceiver, tmp_path: Path
) -> None:
    """Check that a missing file is logged and read once it exists (1.1).

    When it is removed, its last content is kept.
    """
    file = tmp_path / ".rqprc"
    edge = await machines.sender(asks=(), rqprc=file, t_wait1_s=0.1)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await until(lambda: edge.has_condition(queue, "no_answer: no machine is known"))
    assert len(edge.log.events("rqprc_unread")) == 1
    machines.net.rqprc(file, [THERE])
    await sends(edge, receiver, b"hello")
    file.unlink()
    await edge.put(queue, b"more")
    await sends(edge, receiver, b"more")


async def test_names_are_resolved_at_the_question(machines: Machines, receiver: HandReceiver) -> None:
    """Check that names are resolved at the question, to all addresses; unknown names delay no others (1.1)."""
    resolver = Resolver(there=[THERE, "127.0.0.3", "::1"])
    edge = await machines.sender(
        asks=("missing", "there"), edge={"look_up": resolver, "lookup_s": 0.2}, t_wait1_s=0.1
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
    assert edge.log.events("name_not_found", name_asked="missing")


async def test_an_answer_counts_from_any_address_of_a_name(
    machines: Machines, receiver: HandReceiver
) -> None:
    """Check that an answer counts from any present address of a name in `.rqprc` (1.1)."""
    resolver = Resolver(there=["127.0.0.3"])
    edge = await machines.sender(asks=("there",), edge={"look_up": resolver, "lookup_s": 0.05}, t_wait1_s=0.1)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await until(lambda: edge.has_condition(queue, "no_answer: no machine answers"))
    resolver.names["there"] = [THERE]
    await sends(edge, receiver, b"hello")


async def test_condition_names_missing_machines(machines: Machines) -> None:
    """Check that the condition of a transmission queue without machines says so (1.1)."""
    edge = await machines.sender(asks=(), t_wait1_s=0.1)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await until(lambda: edge.has_condition(queue, "no_answer: no machine is known"))


async def test_groups_in_the_store(machines: Machines, receiver: HandReceiver) -> None:
    """Check that groups in the store are asked while they exist, with their settings (1.1, 2.2)."""
    edge = await machines.sender(asks=(), t_wait1_s=0.1)
    queue = await remote(edge)
    spec = {"protocol": "rqp-cast", "addresses": [machines.net.at(THERE)], "omitAddress": True}
    await edge.tools.peers.apply("there", PeerSpec.model_validate(spec), "cli")
    await edge.tools.peers.apply("mca", PeerSpec(protocol=Protocol.MCA, addresses=("127.0.0.3",)), "cli")
    await edge.put(queue, b"hello")
    approval = await receiver.chosen(address=None, omit_address=True)
    assert await receiver.data() == b"\0\0\0\7\0\0\0\5hello"
    await receiver.say(approval.endtransmission_port, approval.id.to_bytes(4, "big") + b"\1")
    await until(lambda: edge.is_empty(queue))
    await edge.tools.peers.delete("there")
    await until(lambda: not agent(edge).machines.to_ask())
    assert agent(edge).machines.options(THERE).omit_address is False


async def test_settings_override_groups_in_the_store(machines: Machines, receiver: HandReceiver) -> None:
    """Check that settings override groups of the same name in the store (1.1)."""
    edge = await machines.sender()
    spec = {"protocol": "rqp-cast", "addresses": ["127.0.0.3"]}
    await edge.tools.peers.apply("others", PeerSpec.model_validate(spec), "cli")
    await edge.tools.peers.apply("more", PeerSpec.model_validate(spec), "cli")
    await until(lambda: agent(edge).machines.to_ask(["more"]))
    assert [str(host) for host in agent(edge).machines.to_ask(["others"])] == [machines.net.at(THERE)]


async def test_trusted_address_identifies_the_receiver(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a trusted address identifies the receiver, for an answer from any address (2.2, 4.2)."""
    addresses = [machines.net.at(THERE), machines.net.at("127.0.0.3")]
    group = {"far": {"addresses": addresses, "trust_address": True}}
    edge = await machines.sender(asks=(), peers=group, t_wait4_s=1.0)
    queue = await remote(edge)
    with HandReceiver(machines.net, "127.0.0.3") as replica:  # another machine of the same system
        await edge.put(queue, b"hello")
        first = await receiver.chosen(address="10.1.1.1")
        await receiver.data()
        await until(lambda: failed(edge, "not_confirmed") == 1)

        async def is_refused() -> bool:
            await replica.question()
            await replica.offer(address="10.9.9.9")
            return unheard(edge, "other_receiver") > 0  # a late answer is not

        await until(is_refused)
        second = await replica.chosen(address="10.1.1.1")
        assert second.id == first.id
        await replica.data()
        await replica.confirm(second, Result.SUCCESS)
        await until(lambda: edge.is_empty(queue))


async def test_hanging_lookup_delays_no_other_name(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a hanging look-up delays no other name: questions are sent without it (1.1)."""
    monkeypatch.setattr(machines_module, "LOOK_UP_S", 0.1)
    names = {"there": ["127.0.0.9"]}

    async def look_up(name: str) -> list[str]:
        if name == "slow":
            await asyncio.Event().wait()
        return names[name]

    edge = await machines.sender(asks=("slow", "there"), edge={"look_up": look_up, "lookup_s": 0.05})
    found, there = agent(edge).machines, Host("there", machines.net.request_port)
    await until(lambda: found.known(there) == ("127.0.0.9",))
    names["there"] = [THERE]
    await until(lambda: found.known(there) == (THERE,))


async def test_addresses_are_forgotten_with_their_name(machines: Machines, tmp_path: Path) -> None:
    """Check that addresses are forgotten with their name (1.1)."""
    file = machines.net.rqprc(tmp_path / ".rqprc", ["there", "elsewhere"])
    resolver = Resolver(there=[THERE], elsewhere=["127.0.0.9"])
    edge = await machines.sender(asks=(), rqprc=file, edge={"look_up": resolver, "lookup_s": 0.05})
    found, port = agent(edge).machines, machines.net.request_port
    await until(lambda: found.known(Host("elsewhere", port)) == ("127.0.0.9",))
    machines.net.rqprc(file, ["there"])
    await until(lambda: found.known(Host("elsewhere", port)) == ())
    assert found.known(Host("there", port)) == (THERE,)

"""Test the bridge's checks at startup, and its cleanup (docs/sysv.md 1.1, 4)."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from protos.rqp_cast import Quality, TMsg, encode_t_msg
from services.store.model.errors import QueueUnknown
from services.store.redis.rights import acl_rules
from services.sysv import claim
from services.sysv.bridge import Unusable
from services.sysv.settings import format_key
from tests.live import until
from tests.servers import Server
from tests.sysv.live import LiveBridge
from tests.sysv.local import Keys, existing, find, make
from tests.sysv.namespace import own_namespace
from tests.sysv.settings import mapping

Mappings = dict[str, dict[str, Any]]


# Loops (4.1)


async def refused(bridge: LiveBridge, mappings: Mappings) -> str:
    with pytest.raises(Unusable) as caught:
        await bridge.open(mappings)
    assert caught.value.reason == "loop"
    return str(caught.value)


async def test_in_and_out_of_the_same_queue(bridge: LiveBridge, key: int) -> None:
    await bridge.queue("orders")
    error = await refused(bridge, {"a": mapping("in", key, "orders"), "b": mapping("out", key, "orders")})
    local = f"local queue {format_key(key)}"
    assert error == f"the mappings form a loop: queue orders -> {local} -> queue orders"
    assert find(key) is None  # no queue was created


async def test_loop_through_other_queues_is_found(bridge: LiveBridge, keys: Keys) -> None:
    for name in ("a", "b"):
        await bridge.queue(name)
    first, second = keys.new(), keys.new()
    ring = {
        "1": mapping("in", first, "a"),
        "2": mapping("out", first, "b"),
        "3": mapping("in", second, "b"),
        "4": mapping("out", second, "a"),
    }
    assert "queue b" in await refused(bridge, ring)
    del ring["4"]
    await bridge.open(ring)


@pytest.mark.parametrize(
    ("remote", "binding"),
    [
        ({"protocol": "rqp-cast", "key": 7}, {"rqpCast": {"key": 7}}),
        ({"protocol": "rqp-mca", "queueId": 7}, {"rqpMca": {"queueId": 7}}),
    ],
)
async def test_out_into_a_remote_queue_that_leads_back(
    bridge: LiveBridge, keys: Keys, remote: dict[str, Any], binding: dict[str, Any]
) -> None:
    await bridge.queue("away", remote=remote)
    await bridge.queue("home", bindings=binding)
    key, other = keys.new(), keys.new()
    round_ = {"in": mapping("in", key, "home"), "out": mapping("out", key, "away")}
    assert "queue away -> queue home" in await refused(bridge, round_)
    apart = {"in": mapping("in", key, "home"), "out": mapping("out", other, "away")}
    await bridge.open(apart)


async def test_number_of_another_protocol_is_ignored(bridge: LiveBridge, key: int) -> None:
    await bridge.queue("away", remote={"protocol": "rqp-cast", "key": 7})
    await bridge.queue("home", bindings={"rqpMca": {"queueId": 7}, "rqpCast": {"key": 8}})
    await bridge.open({"in": mapping("in", key, "home"), "out": mapping("out", key, "away")})


async def test_t_msg_may_have_any_key(bridge: LiveBridge, key: int) -> None:
    for name, spec in (("transmission", {}), ("home", {"bindings": {"rqpCast": {"key": 7}}})):
        await bridge.queue(name, **spec)
    out = mapping("out", key, "transmission", format="t_msg")
    assert "queue home" in await refused(bridge, {"in": mapping("in", key, "home"), "out": out})


async def test_t_msg_key_is_not_an_mca_number(bridge: LiveBridge, key: int) -> None:
    """Check that T_MSGs are never for a queue of RQP/MCA (3.5)."""
    await bridge.queue("transmission")
    await bridge.queue("away", remote={"protocol": "rqp-mca", "queueId": 7})
    await bridge.queue("home", bindings={"rqpMca": {"queueId": 7}})
    out = mapping("out", key, "transmission", format="t_msg")
    await bridge.open({"in": mapping("in", key, "home"), "out": out})


async def test_out_into_a_ring_that_leads_back(bridge: LiveBridge, keys: Keys) -> None:
    """Check that a loop through a ring is refused: other nodes of this store may be in it. Another group is no loop."""
    await bridge.queue("outbox", bindings={"ring": {"outbox": 7}})
    await bridge.queue("inbox", bindings={"ring": {"inbox": 7}})
    await bridge.queue("other", bindings={"ring": {"inbox": 8}})
    key = keys.new()
    round_ = {"in": mapping("in", key, "inbox"), "out": mapping("out", key, "outbox")}
    assert "queue outbox -> queue inbox" in await refused(bridge, round_)
    await bridge.open({"in": mapping("in", key, "other"), "out": mapping("out", key, "outbox")})


# Unusable queues (4.2, 4.3)


async def test_missing_queue_is_an_error(bridge: LiveBridge, key: int) -> None:
    with pytest.raises(QueueUnknown, match="'nowhere'"):
        await bridge.open({"a": mapping("in", key, "nowhere")})
    assert find(key) is None


async def test_missing_mappings_are_an_error(bridge: LiveBridge) -> None:
    with pytest.raises(Unusable, match="there are no mappings"):
        await bridge.open({})


async def test_missing_local_queue_is_an_error(bridge: LiveBridge, key: int) -> None:
    await bridge.queue("orders")
    with pytest.raises(
        Unusable, match=f"mapping a: the local queue with key {format_key(key)} does not exist"
    ) as e:
        await bridge.open({"a": mapping("out", key, "orders", create=False)})
    assert e.value.reason == "missing"


async def test_second_bridge_of_the_same_mapping_is_refused(
    bridge: LiveBridge, key: int, keys: Keys, tmp_path: Path
) -> None:
    """Check that a second bridge of the same mapping is refused, also with another folder (3.2)."""
    await bridge.queue("orders")
    await bridge.open({"a": mapping("out", key, "orders")})
    for journal in (bridge.journal, tmp_path / "elsewhere"):
        other = LiveBridge(bridge.url, journal)
        with pytest.raises(Unusable, match="another `penstock sysv` receives from") as caught:
            await other.open({"b": mapping("out", key, "orders")})
        assert caught.value.reason == "in_use"
        await other.open({"b": mapping("in", key, "orders"), "c": mapping("out", keys.new(), "orders")})
        await other.close()
    await bridge.stop()
    await bridge.open({"a": mapping("out", key, "orders")})


def is_lock(fd: Path) -> bool:
    with suppress(FileNotFoundError):
        return str(fd.readlink()) == claim.NAME.decode()
    return False


@pytest.mark.usefixtures("own_kernel")
def test_lock_works_between_users(key: int) -> None:
    """Check that a lock excludes other users' processes for any umask, which is restored (3.2)."""
    before = os.umask(0o077)
    try:
        claimed = claim.Claim(key)
        (lock,) = [fd for fd in Path("/proc/self/fd").iterdir() if is_lock(fd)]
        mode = lock.stat().st_mode & 0o777
        claimed.close()
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)
    assert mode == 0o666


async def test_second_bridge_of_the_same_journal_is_refused(bridge: LiveBridge, key: int) -> None:
    """Check that a second bridge of the same journal is refused, also in another namespace, with its own key (3.2)."""
    await bridge.queue("orders")
    await bridge.open({"a": mapping("out", key, "orders")})
    other = LiveBridge(bridge.url, bridge.journal)
    with own_namespace(), pytest.raises(Unusable, match=r"the journal .* is in use") as caught:
        await other.open({"a": mapping("out", key, "orders")})
    assert caught.value.reason == "in_use"
    await other.close()


async def test_kernel_without_key_locks_is_logged(
    bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a kernel without locks of keys is logged and used (3.2)."""
    monkeypatch.setattr(claim, "NAME", b"no name of a queue")
    await bridge.queue("orders")
    await bridge.open({"a": mapping("out", key, "orders")})
    assert bridge.log.events("sysv_unclaimed")


async def test_unusable_folder_is_an_error(bridge: LiveBridge, key: int, tmp_path: Path) -> None:
    await bridge.queue("orders")
    (tmp_path / "file").write_text("")
    with pytest.raises(Unusable) as caught:
        await bridge.open({"a": mapping("out", key, "orders")}, journal=tmp_path / "file")
    assert caught.value.reason == "no_journal"


async def test_bridge_waits_for_the_store_at_startup(
    own_server: Server, own_bridge: LiveBridge, key: int
) -> None:
    """Check that the bridge waits for the store at startup (1.1)."""
    await own_bridge.queue("orders")
    own_server.kill9()
    opening = asyncio.create_task(own_bridge.open({"a": mapping("in", key, "orders")}))
    await until(lambda: own_bridge.log.events("sysv_waits_for_store"))
    own_server.restart()
    await opening
    assert find(key) is not None


async def test_edge_user_has_sufficient_rights(bridge: LiveBridge, server: Server, keys: Keys) -> None:
    """Check that rights from `penstock store rights` suffice in both directions, for T_MSGs and for dead letters."""
    requests, replies = await bridge.queue("requests"), await bridge.queue("replies")
    into, out, damaged = keys.new(), keys.new(), keys.new()
    server.call("ACL", "SETUSER", "sysv", *acl_rules(), ">secret")
    user = LiveBridge(server.url.replace("//", "//sysv:secret@"), bridge.journal)
    try:
        await user.open(
            {
                "in": mapping("in", into, "requests"),
                "out": mapping("out", out, "replies"),
                "t_msg": mapping("out", damaged, "replies", format="t_msg"),
            }
        )
        await bridge.put(requests, b"1", bytes(10_000))
        existing(out).send(b"2")
        existing(damaged).send(b"no T_MSG")
        existing(damaged).send(encode_t_msg(TMsg(Quality.HIGH_QUALITY, 0, 404, b"")))
        await until(lambda: bridge.bodies(replies))
        await until(lambda: existing(into).current_messages)

        async def are_dead() -> bool:
            return len(await bridge.dead(replies)) == 2 and len(await bridge.dead(requests)) == 1

        await until(are_dead)
        assert not user.log.events("sysv_waits")
    finally:
        await user.close()
        server.call("ACL", "DELUSER", "sysv")


# The end (4.2)


async def test_local_queues_stay(bridge: LiveBridge, key: int) -> None:
    await bridge.queue("orders")
    await bridge.open({"a": mapping("in", key, "orders")})
    await bridge.stop()
    assert find(key) is not None


async def test_remove_on_exit_removes_created_queues(bridge: LiveBridge, keys: Keys) -> None:
    ours, full, theirs = keys.new(), keys.new(), keys.new()
    make(theirs)
    await bridge.queue("orders")
    mappings = {str(key): mapping("in", key, "orders") for key in (ours, full, theirs)}
    await bridge.open(mappings, remove_on_exit=True)
    existing(full).send(b"unread")
    await bridge.stop()
    assert [find(key) is None for key in (ours, full, theirs)] == [True, True, False]
    removed = bridge.log.events("sysv_removed")
    assert {(getattr(line, "mapping", ""), getattr(line, "messages", 0)) for line in removed} == {
        (str(ours), 0),
        (str(full), 1),
    }


async def test_remove_on_exit_keeps_queues_of_programs(bridge: LiveBridge, keys: Keys) -> None:
    """Check that only queues of the bridge are removed, not a program's with the same key, noticed or not."""
    noticed, unnoticed, again = keys.new(), keys.new(), keys.new()
    queue = await bridge.queue("orders")
    await bridge.queue("others")
    mappings = {
        "noticed": mapping("in", noticed, "orders"),
        "unnoticed": mapping("in", unnoticed, "others"),
        "again": mapping("out", again, "others"),
    }
    await bridge.open(mappings, remove_on_exit=True)
    for key in (noticed, unnoticed, again):
        existing(key).remove()
    for key in (noticed, unnoticed):
        make(key).send(b"precious")
    await bridge.put(queue, b"x")
    await until(lambda: existing(noticed).current_messages == 2)
    await until(lambda: find(again))
    await bridge.stop()
    assert [find(key) is None for key in (noticed, unnoticed, again)] == [False, False, True]
    removed = [getattr(line, "mapping", "") for line in bridge.log.events("sysv_removed")]
    assert removed == ["again"]

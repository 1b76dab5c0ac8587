"""A store that cannot write to its disk: clients, logs and doctor have its own words."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from services.store import StoreUnavailable
from services.store.checkup import examine
from services.store.pipeline.pipe import PipeSettings
from services.store.redis import disk
from services.store.redis.probe import Grade
from tests.servers import Server, eventually
from tests.store.desk import Desk, until
from tests.stores import every_server

WORDS = "MISCONF .*unable to persist to disk"


@pytest.fixture
def unwritable(own_server: Server) -> Server:
    """A server that cannot write its snapshot: a folder is in the way, which stops root, too."""
    (own_server.directory / "dump.rdb" / "in the way").mkdir(parents=True)
    return own_server


def forbid_writes(server: Server) -> None:
    """From now on writes are refused, as they are when the append-only file cannot be written."""
    server.call("CONFIG", "SET", "save", "3600 1")
    server.call("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
    server.call("BGSAVE")
    eventually(lambda: server.info("persistence")["rdb_last_bgsave_status"] == "err")


@every_server
async def test_the_servers_words_reach_client_and_log(
    unwritable: Server, caplog: pytest.LogCaptureFixture
) -> None:
    settings = PipeSettings(patience_s=0.3, call_deadline_s=20.0)
    async with Desk(unwritable, pipe=settings) as desk:
        queue = await desk.queue()
        await desk.put(queue, b"before")
        forbid_writes(unwritable)
        with pytest.raises(StoreUnavailable, match=WORDS) as refused:
            await desk.publish(queue, b"never")
        assert WORDS.split()[0] in refused.value.outward
        assert str(unwritable.port) not in refused.value.outward
        (said,) = (r.getMessage() for r in caplog.records if vars(r).get("action") == "store_away")
        assert "MISCONF" in said
        unwritable.call("CONFIG", "SET", "save", "")
        await until(lambda: desk.pipe.trouble is None)
        await desk.publish(queue, b"after")
        assert await desk.drain(queue) == [b"before", b"after"]


async def test_a_call_that_is_late_because_of_the_disk_says_so(unwritable: Server) -> None:
    settings = PipeSettings(patience_s=30.0, call_deadline_s=0.5)
    async with Desk(unwritable, pipe=settings) as desk:
        queue = await desk.queue()
        forbid_writes(unwritable)
        late = desk.publishing(queue, b"late")
        await until(lambda: desk.pipe.trouble is not None and desk.pipe.trouble.names_disk)
        born = unwritable.call("TIME")
        await until(lambda: int(unwritable.call("TIME")[0]) >= int(born[0]) + 2)
        unwritable.call("CONFIG", "SET", "save", "")
        with pytest.raises(StoreUnavailable, match=WORDS):
            await late
        assert desk.refusals["too_late"] == 0
        assert await desk.drain(queue) == []


async def test_doctor_has_the_servers_words(unwritable: Server) -> None:
    async with Desk(unwritable) as desk:
        forbid_writes(unwritable)
        (disk,) = [finding for finding in await examine(desk.store) if finding.subject == "disk"]
        assert disk.grade is Grade.FAIL
        assert "unable to persist to disk" in disk.found


async def test_a_call_refused_again_and_again_is_given_up_with_the_servers_words(own_server: Server) -> None:
    """The session attaches each time: only the answer to the call shows that the store is there."""
    async with Desk(own_server, pipe=PipeSettings(patience_s=0.3, call_deadline_s=20.0)) as desk:
        queue = await desk.queue()
        own_server.call("CONFIG", "SET", "min-replicas-to-write", "1")
        with pytest.raises(StoreUnavailable, match="NOREPLICAS"):
            async with asyncio.timeout(10):
                await desk.publish(queue, b"never")
        own_server.call("CONFIG", "SET", "min-replicas-to-write", "0")
        await until(lambda: desk.pipe.trouble is None)
        assert await desk.drain(queue) == []


async def test_calls_that_fail_together_look_at_the_disk_once_and_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[threading.Thread] = []
    look = disk.disk_trouble

    def counted(folder: Path) -> disk.DiskTrouble | None:
        looks.append(threading.current_thread())
        return look(folder)

    monkeypatch.setattr(disk, "disk_trouble", counted)
    monkeypatch.setattr(disk, "LOOK_AGAIN_S", 600.0)  # however slow the machine is
    desk = Desk(f"unix://{tmp_path}/store.sock", pipe=PipeSettings(patience_s=0.3), initialise=False)
    links = [desk.store.registry.link, desk.store.open_domain("main").link]
    answers = await asyncio.gather(*(link.call("PING") for link in links * 20), return_exceptions=True)
    assert {type(answer) for answer in answers} == {StoreUnavailable}
    await desk.store.close()
    assert len(looks) == 1
    assert looks[0] is not threading.main_thread()

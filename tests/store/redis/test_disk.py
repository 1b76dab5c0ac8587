"""A store that cannot write to its disk: clients, logs and doctor show the server's error."""

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
    """Make the server's snapshot fail by a folder in its place, which stops root, too."""
    (own_server.directory / "dump.rdb" / "in the way").mkdir(parents=True)
    return own_server


def forbid_writes(server: Server) -> None:
    """Wait until writes are refused, as they are when the AOF cannot be written."""
    server.call("CONFIG", "SET", "save", "3600 1")
    server.call("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
    server.call("BGSAVE")
    eventually(lambda: server.info("persistence")["rdb_last_bgsave_status"] == "err")


@every_server
async def test_disk_error_reaches_client_and_log(
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
        (record,) = (r.getMessage() for r in caplog.records if vars(r).get("action") == "store_away")
        assert "MISCONF" in record
        unwritable.call("CONFIG", "SET", "save", "")
        await until(lambda: desk.pipe.trouble is None)
        await desk.publish(queue, b"after")
        assert await desk.drain(queue) == [b"before", b"after"]


async def test_call_late_because_of_the_disk_names_it(unwritable: Server) -> None:
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


async def test_doctor_shows_the_disk_error(unwritable: Server) -> None:
    async with Desk(unwritable) as desk:
        forbid_writes(unwritable)
        (disk,) = [finding for finding in await examine(desk.store) if finding.subject == "disk"]
        assert disk.grade is Grade.FAIL
        assert "unable to persist to disk" in disk.found


async def test_repeatedly_refused_call_fails_with_the_servers_error(own_server: Server) -> None:
    """Check that a repeatedly refused call fails with the server's error, although the session attaches each time."""
    async with Desk(own_server, pipe=PipeSettings(patience_s=0.3, call_deadline_s=20.0)) as desk:
        queue = await desk.queue()
        own_server.call("CONFIG", "SET", "min-replicas-to-write", "1")
        with pytest.raises(StoreUnavailable, match="NOREPLICAS"):
            async with asyncio.timeout(10):
                await desk.publish(queue, b"never")
        own_server.call("CONFIG", "SET", "min-replicas-to-write", "0")
        await until(lambda: desk.pipe.trouble is None)
        assert await desk.drain(queue) == []


async def test_calls_that_fail_together_probe_the_disk_once_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes: list[threading.Thread] = []
    probe = disk.disk_trouble

    def counted(folder: Path) -> disk.DiskTrouble | None:
        probes.append(threading.current_thread())
        return probe(folder)

    monkeypatch.setattr(disk, "disk_trouble", counted)
    monkeypatch.setattr(disk, "CACHE_S", 600.0)  # even on a slow machine
    desk = Desk(f"unix://{tmp_path}/store.sock", pipe=PipeSettings(patience_s=0.3), initialise=False)
    links = [desk.store.registry.link, desk.store.open_domain("main").link]
    answers = await asyncio.gather(*(link.call("PING") for link in links * 20), return_exceptions=True)
    assert {type(answer) for answer in answers} == {StoreUnavailable}
    await desk.store.close()
    assert len(probes) == 1
    assert probes[0] is not threading.main_thread()

"""Test name resolution with a silent name server: hanging names do not delay others."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from services.kit.dns.lookup import MAX_LOOKUPS, NameResolver, resolve
from services.kit.dns.tcp_connect import open_tcp
from tests.kit.harness import PATIENCE_S, ROOT, eventually, until
from tests.silent import NameServer, on_silent_machine

LOCAL = (socket.AF_INET, ("127.0.0.1", 0))


def threads() -> int:
    """Count the resolver threads."""
    return sum(each.name == "resolver" for each in threading.enumerate())


def alone(scenario: Callable[[NameServer], Coroutine[Any, Any, None]], folder: Path) -> None:
    """Run the scenario with a silent name server, once the look-ups of other tests have ended."""
    eventually(lambda: not threads())
    on_silent_machine(scenario, folder)


def hanging(resolver: NameResolver, count: int, word: str = "hangs") -> list[asyncio.Task[Any]]:
    return [
        asyncio.create_task(resolver.resolve(f"{word}{number}.example".encode())) for number in range(count)
    ]


async def ended(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.wait(tasks)


@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("127.0.0.1", (socket.AF_INET, ("127.0.0.1", 7))),
        ("127.1", (socket.AF_INET, ("127.0.0.1", 7))),
        ("::1", (socket.AF_INET6, ("::1", 7, 0, 0))),
        ("::ffff:127.0.0.1", (socket.AF_INET6, ("::ffff:127.0.0.1", 7, 0, 0))),
        ("fe80::1%lo", (socket.AF_INET6, ("fe80::1", 7, 0, socket.if_nametoindex("lo")))),
    ],
)
async def test_addresses_are_resolved_without_a_thread(
    host: str, place: tuple[int, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.kit.dns.lookup._resolver", None)
    assert await resolve(host, 7) == [place]


async def test_known_name_is_resolved() -> None:
    found = await resolve("localhost", 7)
    assert (socket.AF_INET, ("127.0.0.1", 7)) in found
    assert len(found) == len(set(found))


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "a\0b"])
async def test_invalid_name_is_refused(host: str) -> None:
    with pytest.raises(UnicodeError):
        await resolve(host, 7)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "fe80::1%nowhere", "127.0.0.1:7"])
async def test_unknown_name_is_an_error(host: str) -> None:
    with pytest.raises(socket.gaierror) as caught:
        await resolve(host, 7)
    assert caught.value.strerror


def test_hanging_names_do_not_delay_others(tmp_path: Path) -> None:
    """Check that hanging names delay neither connections to addresses nor cached names."""

    async def scenario(names: NameServer) -> None:
        lost = [asyncio.create_task(open_tcp(f"hangs{number}.example", 7, 600)) for number in range(8)]
        await until(lambda: len(names.asked) == 8)
        with socket.create_server(("127.0.0.1", 0)) as server:
            async with asyncio.timeout(PATIENCE_S):
                for host in ("127.0.0.1", "localhost"):
                    sock, address = await open_tcp(host, server.getsockname()[1], PATIENCE_S)
                    sock.close()
                    assert address == "127.0.0.1"
        assert not any(task.done() for task in lost)
        await ended(lost)
        with pytest.raises(TimeoutError, match=r"the name was not resolved within 0\.05 s"):
            await open_tcp("hangs0.example", 7, 0.05)

    alone(scenario, tmp_path)


def test_callers_of_the_same_name_share_a_lookup(tmp_path: Path) -> None:
    """Check that callers of the same name share a look-up, also late ones and after others were cancelled."""

    async def scenario(names: NameServer) -> None:
        resolver = NameResolver()
        tasks = [asyncio.create_task(resolver.resolve(b"late.example")) for _ in range(3)]
        lost = [asyncio.create_task(resolver.resolve(b"lost.example")) for _ in range(2)]
        await until(lambda: names.asked == {"late.example", "lost.example"})
        assert threads() == 2
        await ended(tasks[:1])
        names.speak(**{"late.example": "127.0.0.9"})
        async with asyncio.timeout(PATIENCE_S):
            for task in tasks[1:]:
                assert await task == [(socket.AF_INET, ("127.0.0.9", 0))]
            for task in lost:
                with pytest.raises(socket.gaierror, match="Name or service not known"):
                    await task
        await until(lambda: not threads())

    alone(scenario, tmp_path)


def test_concurrent_lookups_are_limited(tmp_path: Path) -> None:
    """Check that concurrent look-ups are limited.

    An error says that the name is queued; a queued name without callers is not looked up.
    """

    async def scenario(names: NameServer) -> None:
        resolver = NameResolver(2, 0.05)
        tasks = hanging(resolver, 2)
        await until(lambda: len(names.asked) == 2)
        with pytest.raises(OSError, match=r"no lookup was possible within 0\.05 s: 2 other names"):
            await resolver.resolve(b"localhost")
        names.speak()
        async with asyncio.timeout(PATIENCE_S):
            for task in tasks:
                with pytest.raises(socket.gaierror):
                    await task
        await until(lambda: not threads())
        assert names.asked == {"hangs0.example", "hangs1.example"}
        assert LOCAL in await resolver.resolve(b"localhost")

    alone(scenario, tmp_path)


def test_queued_lookups_are_resolved(tmp_path: Path) -> None:
    async def scenario(names: NameServer) -> None:
        resolver = NameResolver(2, PATIENCE_S)
        tasks = hanging(resolver, 10)
        await until(lambda: len(names.asked) == 2)
        assert threads() == 2
        names.speak(**{f"hangs{number}.example": f"127.0.0.{number}" for number in range(10)})
        async with asyncio.timeout(PATIENCE_S):
            found = await asyncio.gather(*tasks)
        assert [places[0][1][0] for places in found] == [f"127.0.0.{number}" for number in range(10)]
        await until(lambda: not threads())

    alone(scenario, tmp_path)


def test_default_resolver_limits_threads(tmp_path: Path) -> None:
    """Check that the default resolver limits threads: with many hanging and queued, addresses are still reached."""

    async def scenario(names: NameServer) -> None:
        resolver = NameResolver(queue_timeout_s=600)
        tasks = hanging(resolver, 10 * MAX_LOOKUPS)
        await until(lambda: len(names.asked) == MAX_LOOKUPS)
        assert threads() == MAX_LOOKUPS
        with socket.create_server(("127.0.0.1", 0)) as server:
            sock, _ = await open_tcp("127.0.0.1", server.getsockname()[1], PATIENCE_S)
            sock.close()
        await ended(tasks)
        assert threads() == MAX_LOOKUPS  # cancelled, but the system call cannot be

    alone(scenario, tmp_path)


def test_answer_for_a_closed_loop_is_dropped(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Check that an answer for a closed loop is dropped, and later callers use the next loop."""
    resolver = NameResolver()

    async def first() -> None:
        asyncio.get_running_loop().create_task(resolver.resolve(b"hangs.example"))
        await until(lambda: threads())

    async def scenario(names: NameServer) -> None:
        await asyncio.to_thread(asyncio.run, first())
        waiting = asyncio.create_task(resolver.resolve(b"hangs.example"))
        await until(lambda: names.asked)
        names.speak(**{"hangs.example": "127.0.0.3"})
        assert await waiting == [(socket.AF_INET, ("127.0.0.3", 0))]
        await until(lambda: not threads())

    alone(scenario, tmp_path)
    assert "Traceback" not in capfd.readouterr().err


LIMITED = """
import asyncio, resource
from pathlib import Path
from services.kit.dns.lookup import resolve

async def main():
    try:
        await resolve("localhost", 7)
    except OSError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    print(len(await resolve("127.0.0.1", 7)), bool(await resolve("localhost", 7)))

size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 20), -1))
asyncio.run(main())
"""


def test_lookup_fails_if_no_thread_can_start() -> None:
    """Check that a look-up fails if no thread can start for lack of memory, and is retried the next time."""
    command = [sys.executable, "-P", "-c", LIMITED]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.splitlines() == ["names cannot be resolved now: can't start new thread", "1 True"]


async def test_unexpected_resolver_error_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that an unexpected resolver error is reported, and the name can be looked up again."""
    resolver = NameResolver(1)

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("services.kit.dns.lookup._getaddrinfo", fail)
        with pytest.raises(OSError, match=r"cannot be resolved: MemoryError"):
            await resolver.resolve(b"localhost")
    assert LOCAL in await resolver.resolve(b"localhost")

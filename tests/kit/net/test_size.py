"""Test the memory of an idle connection with its session."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.kit.net.sockets import raise_descriptor_limit
from tests.kit.echo_edge import frame
from tests.kit.harness import Program, exchange

CONNECTIONS = 1_000
MOST_KIB = 16  # resident bytes each


@pytest.fixture(autouse=True)
def _descriptors() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_descriptor_limit()
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def resident_kib(pid: int) -> int:
    found = re.search(r"^Rss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_idle_connection_uses_little_memory() -> None:
    with Program() as program:
        for _ in range(50):  # one-time allocations
            assert exchange(program.connect(), frame(b"E", b"hello")) == b"hello"
        before = resident_kib(program.process.pid)
        for _ in range(CONNECTIONS):
            assert exchange(program.connect(), frame(b"E", b"hello")) == b"hello"
        each = (resident_kib(program.process.pid) - before) / CONNECTIONS
        assert each < MOST_KIB

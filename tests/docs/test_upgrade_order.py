"""Check docs/upgrades.md, "On machines": upgrade and rollback, with edges of two versions on one store.

There is one version so far. The other is a copy of the program whose store functions differ in their text under the
same name, or in their name, as for an incompatible change.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from protos.tmq import Dialect
from services.store.redis.library import LIBRARY
from tests.cli.shell import Shell
from tests.program import EdgeProgram
from tests.servers import PROGRAMS, Server
from tests.tmq.client import Client
from tests.tmq.process import ROOT

PAGE = ROOT / "docs" / "upgrades.md"
LEFT = shutil.ignore_patterns("vendor", "page")  # the console's files, which are not used
FUNCTIONS = re.compile(r"\bfunctions\b.*, of this version")
ROUNDS = 10


def same_name(tree: Path) -> None:
    path = tree / "services" / "store" / "lua" / "schema.lua"
    path.write_text(path.read_text() + "-- of the next version\n")


def another_name(tree: Path) -> None:
    for path in (tree / "services").rglob("*"):
        if path.suffix in (".py", ".lua"):
            text = path.read_text()
            changed = text.replace(LIBRARY, "penstock2").replace("ps1_", "ps2_")
            if changed != text:  # otherwise the compiled file can be used
                path.write_text(changed)


class Tmq(EdgeProgram):
    edge = "tmq"
    listeners = ("listeners.document.port=0", "listeners.reference=off")

    def __init__(self, url: str, folder: Path, tree: Path) -> None:
        super().__init__(url, folder)
        self.tree = tree


class Machines:
    """Two machines with an edge each, started from the program that the link names."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.link = folder / "penstock"
        self.edges: list[Tmq] = []
        self.kept: list[bytes] = []

    def lead_to(self, tree: Path) -> None:
        self.link.unlink(missing_ok=True)
        self.link.symlink_to(tree)

    def type(self, tree: Path, command: str) -> str:
        """Return the output of a command of that version."""
        words = command.removeprefix("penstock ").split()
        if tree == ROOT:
            return Shell(self.folder, {"REDIS_URL": self.server.url}).run(*words).text
        environment = {**os.environ, "REDIS_URL": self.server.url}
        done = subprocess.run(
            [sys.executable, "-m", "services.cli.main", *words],
            cwd=tree, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    async def begin(self) -> Tmq:
        return await Tmq(self.server.url, self.folder, self.link.resolve()).__aenter__()

    async def restart(self, number: int) -> None:
        """Restart one edge while the other serves its clients."""
        assert await self.edges[number].stop() == 0
        await self.exchange(self.edges[1 - number])
        self.edges[number] = await self.begin()
        await self.exchange(*self.edges)

    async def exchange(self, *edges: Tmq) -> None:
        """Check that each edge delivers what each edge accepts, and leave messages in a queue until the end."""
        clients = [await Client.connect(each.place("document"), Dialect.DOCUMENT) for each in edges]
        for giver in clients:
            for taker in clients:
                passed, kept = await giver.queue(b"passed"), await giver.queue(b"kept")
                bodies = [b"%d" % number for number in range(ROUNDS)]
                await giver.put(passed, *bodies)
                assert [await taker.dnq(await taker.queue(b"passed")) for _ in bodies] == bodies
                self.kept.append(b"kept %d" % len(self.kept))
                await giver.put(kept, self.kept[-1])
        for client in clients:
            client.close()


@pytest_asyncio.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    server = Server(next(iter(PROGRAMS)), tmp_path / "store").start()
    made = Machines(server, tmp_path)
    try:
        yield made
    finally:
        for edge in made.edges:
            await edge.__aexit__(None, None, None)
        server.end()


def commands(text: str) -> Iterator[str]:
    yield from (f"penstock {words}" for words in re.findall(r"`penstock ([^`]+)`", text))


def upgrade_and_rollback() -> tuple[list[str], list[str]]:
    """Return the commands of the upgrade and of the rollback."""
    upgrade, _, back = PAGE.read_text().partition("**An upgrade**")[2].partition("**The way back**")
    return list(commands(upgrade)), list(commands(back.partition("\n## ")[0]))


@pytest.mark.parametrize("change", [same_name, another_name])
async def test_the_order_of_an_upgrade_and_the_way_back(
    machines: Machines, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    old, new = ROOT, tmp_path / "new"
    for part in ("services", "protos"):
        shutil.copytree(ROOT / part, new / part, ignore=LEFT)
    change(new)
    ((config, init, doctor), (last,)) = upgrade_and_rollback()
    machines.type(new, config)
    machines.lead_to(old)
    machines.type(old, init)
    machines.edges = [await machines.begin() for _ in range(2)]
    await machines.exchange(*machines.edges)

    machines.type(new, init)
    await machines.exchange(*machines.edges)  # connections of the old version continue
    machines.lead_to(new)
    for number in range(2):
        await machines.restart(number)
    assert FUNCTIONS.search(machines.type(new, doctor))

    machines.lead_to(old)
    for number in range(2):
        await machines.restart(number)
    machines.type(old, last)
    await machines.exchange(*machines.edges)
    assert FUNCTIONS.search(machines.type(old, doctor))

    client = await Client.connect(machines.edges[0].place("document"), Dialect.DOCUMENT)
    assert await client.drain(await client.queue(b"kept")) == machines.kept
    client.close()

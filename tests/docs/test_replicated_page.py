"""Check docs/chart.md, "Sentinel and Cluster": its files on real servers, its URLs, and two failovers in a row.

tests/e2e/test_failovers.py does the same in pods, below edges of a release.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from services.system.pdeathsig import die_with_parent
from tests.cli.shell import Shell
from tests.docs import replicated_page as page
from tests.kit.authority import Authority
from tests.servers import eventually, free_port

LOOK_AGAIN_S = 0.1
NAME = re.compile(r"(redis|sentinel)-(\d)\.store(:6379|:26379| 6379)?")


class Place:
    """The pods of the page as local processes: each name is `localhost` with a port of its own."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.kind = kind
        Authority.create(folder)
        for ours, name in (("chain.pem", "tls.crt"), ("key.pem", "tls.key"), ("ca.pem", "ca.crt")):
            (folder / name).write_bytes((folder / ours).read_bytes())
        servers = [f"redis-{i}" for i in range(3 if kind == "sentinel" else 6)]
        self.sentinels = [f"sentinel-{i}" for i in range(3)] if kind == "sentinel" else []
        self.servers = servers
        self.ports = {name: free_port() for name in (*servers, *self.sentinels)}
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def here(self, text: str) -> str:
        def place(found: re.Match[str]) -> str:
            port = found[3] or ""
            return f"localhost{port[:1]}{self.ports[f'{found[1]}-{found[2]}'] if port else ''}"

        text = text.replace("/tls/", f"{self.folder}/").replace("/etc/penstock/store-tls/", f"{self.folder}/")
        return NAME.sub(place, text)

    def start(self) -> None:
        for name in self.servers:
            own = page.file("# redis.conf")
            if self.kind == "cluster":
                own += page.file("# redis.conf of a Cluster, beside that") + f"cluster-port {free_port()}\n"
            else:
                own += f"replica-announce-ip {name}.store\n"
                own += "" if name == "redis-0" else "replicaof redis-0.store 6379\n"
            self._write(name, own.replace("tls-port 6379", f"tls-port {self.ports[name]}"))
            (self.folder / name / "users.acl").write_text(page.users())
            self.run(name)
        for name in self.servers:
            eventually(lambda name=name: self.call(name, "ping"), pause_s=LOOK_AGAIN_S)
        for name in self.sentinels:
            own = page.file("# sentinel.conf") + f"sentinel announce-ip {name}.store\n"
            self._write(name, own.replace("tls-port 26379", f"tls-port {self.ports[name]}"))
            self.run(name)
        if self.kind == "cluster":
            subprocess.run(shlex.split(self.here(page.creating())), check=True, capture_output=True)
        self._settled()

    def _write(self, name: str, text: str) -> None:
        folder = self.folder / name
        folder.mkdir()
        (folder / "server.conf").write_text(
            self.here(text).replace("dir /data", f"dir {folder}").replace("/data/", f"{folder}/")
        )

    def run(self, name: str) -> None:
        words = ["--sentinel"] if name in self.sentinels else []
        log = ["--logfile", str(self.folder / name / "log")]
        self.running[name] = subprocess.Popen(
            ["redis-server", str(self.folder / name / "server.conf"), *words, *log],
            preexec_fn=partial(die_with_parent, os.getpid()),
            stdout=subprocess.DEVNULL,
        )

    @contextmanager
    def client(self, name: str) -> Iterator[Redis]:
        """Yield an administrator's client of this server. Refusals and timeouts raise RedisError."""
        user = ("", "sentinel-secret") if name in self.sentinels else ("admin", "admin-secret")
        with Redis(
            host="localhost", port=self.ports[name], username=user[0] or None, password=user[1],
            ssl=True, ssl_ca_certs=str(self.folder / "ca.crt"), decode_responses=True,
        ) as client:  # fmt: skip
            yield client

    def call(self, name: str, *words: str) -> Any:
        with self.client(name) as client:
            return client.execute_command(*words)

    def _knows_all(self, name: str) -> bool:
        with self.client(name) as client:
            state = client.sentinel_master("mymaster")
        return (state["num-slaves"], state["num-other-sentinels"], state["flags"]) == (2, 2, "master")

    def primary(self) -> str:
        """Return the server that has the catalogue. Raises RedisError while none is known."""
        if self.kind == "sentinel":
            with self.client("sentinel-0") as client:
                _, port = client.sentinel_get_master_addr_by_name("mymaster")
            return next(name for name, own in self.ports.items() if own == port)
        for name in self.servers:
            if self.running[name].poll() is None and self.call(name, "role")[0] == "master":
                try:
                    self.call(name, "exists", "ps:{registry}:epoch")
                except ResponseError:
                    continue  # MOVED
                return name
        raise ResponseError("no node has the catalogue")

    def number_linked(self) -> int:
        with self.client(self.primary()) as client:
            info = client.info("replication")
        return sum(isinstance(each, dict) and each.get("state") == "online" for each in info.values())

    def _settled(self) -> None:
        """Wait until the replicas are linked and all Sentinels know about them."""
        wanted = 2 if self.kind == "sentinel" else 1
        eventually(lambda: self.number_linked() == wanted, pause_s=LOOK_AGAIN_S)
        eventually(lambda: all(map(self._knows_all, self.sentinels)), pause_s=LOOK_AGAIN_S)

    def fail_over(self) -> None:
        """Kill the primary, and start it again once another server has taken over."""
        old = self.primary()
        self.running[old].kill()
        self.running[old].wait()
        eventually(lambda: self.primary() != old, pause_s=LOOK_AGAIN_S)
        self.run(old)
        self._settled()

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()


@pytest.fixture(params=["sentinel", "cluster"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, request.param)
    try:
        made.start()
        yield made
    finally:
        made.end()


def test_two_failovers_lose_nothing(place: Place, tmp_path: Path) -> None:
    """Check that two failovers lose no message, with the page's URLs and its commands for a pod."""
    alone = Shell(tmp_path)
    secret = next(line for line in page.commands(place.kind) if "edge-url" in line)
    literals = [word.removeprefix("--from-literal=") for word in shlex.split(secret) if "literal" in word]
    secrets = {name: place.here(value) for name, _, value in (word.partition("=") for word in literals)}
    alone.run("store", "init", REDIS_URL=secrets["admin-url"])
    apply = ("store", "rights", "--apply", "--password-file", "-")
    applied = alone.run(*apply, stdin=secrets["edge-password"].encode(), REDIS_URL=secrets["admin-url"]).text
    assert applied.count("user edge is set, stored in its ACL file") == len(place.servers)
    assert "the same on" in alone.run("doctor", REDIS_URL=secrets["admin-url"]).text
    alone.environment["REDIS_URL"] = secrets["edge-url"]
    alone.run("queue", "apply", "-f", "-", stdin=b"metadata: {name: invoices}\n")
    assert alone.run("queue", "show", "invoices", "--json").object["ackLevel"] == "replicated:1"
    for number in ("1", "2", "3"):
        alone.run("put", "invoices", number)
        if number != "3":
            place.fail_over()
    assert alone.run("get", "invoices", "--all").text.split() == ["1", "2", "3"]

"""docs/chart.md, "Sentinel and Cluster": its files on real servers here, its URLs, and two failovers in a row.

tests/e2e/test_failovers.py does the same in pods, below edges of a release.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from services.system.pdeathsig import die_with_parent
from tests.cli.shell import Shell
from tests.docs import replicated_page as page
from tests.kit.authority import Authority
from tests.servers import eventually, free_port

NAME = re.compile(r"(redis|sentinel)-(\d)\.store(:6379|:26379| 6379)?")


class Place:
    """The pods of the page as processes here: each name is `localhost` with a port of its own."""

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
            eventually(lambda name=name: self.cli(name, "ping") == "PONG")
        for name in self.sentinels:
            own = page.file("# sentinel.conf") + f"sentinel announce-ip {name}.store\n"
            self._write(name, own.replace("tls-port 26379", f"tls-port {self.ports[name]}"))
            self.run(name)
        if self.kind == "cluster":
            subprocess.run(shlex.split(self.here(page.creating())), check=True, capture_output=True)
        eventually(lambda: self.number_linked() == (2 if self.kind == "sentinel" else 1))
        eventually(lambda: all(map(self._knows_all, self.sentinels)))

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

    def cli(self, name: str, *words: str) -> str:
        login = (
            ["--pass", "sentinel-secret"]
            if name in self.sentinels
            else ["--user", "admin", "--pass", "admin-secret"]
        )
        tls = ["--tls", "--cacert", str(self.folder / "ca.crt"), "--no-auth-warning"]
        command = ["redis-cli", "-h", "localhost", "-p", str(self.ports[name]), *tls, *login, *words]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ConnectionError(done.stderr)
        return done.stdout.strip()

    def _knows_all(self, name: str) -> bool:
        flat = self.cli(name, "sentinel", "master", "mymaster").splitlines()
        state = dict(zip(flat[::2], flat[1::2], strict=True))
        return (state["num-slaves"], state["num-other-sentinels"], state["flags"]) == ("2", "2", "master")

    def primary(self) -> str:
        """Of the catalogue. Raises ConnectionError."""
        if self.kind == "sentinel":
            told = self.cli("sentinel-0", "sentinel", "get-master-addr-by-name", "mymaster").splitlines()
            return next(name for name, port in self.ports.items() if port == int(told[1]))
        for name in self.servers:
            if self.running[name].poll() is None and self.cli(name, "role").startswith("master"):
                try:
                    self.cli(name, "-e", "exists", "ps:{registry}:epoch")
                except ConnectionError:
                    continue  # MOVED
                return name
        raise ConnectionError("no node has the catalogue")

    def number_linked(self) -> int:
        return self.cli(self.primary(), "info", "replication").count("state=online")

    def fail_over(self) -> None:
        """Kills the primary, and starts it again once another server has taken over."""
        old = self.primary()
        self.running[old].kill()
        self.running[old].wait()
        eventually(lambda: self.primary() != old)
        self.run(old)
        eventually(lambda: self.number_linked() == (2 if self.kind == "sentinel" else 1))
        eventually(lambda: all(map(self._knows_all, self.sentinels)))

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
    """With the page's URLs and the commands that it runs in a pod."""
    alone = Shell(tmp_path)
    secret = next(line for line in page.commands(place.kind) if "edge-url" in line)
    literals = [word.removeprefix("--from-literal=") for word in shlex.split(secret) if "literal" in word]
    told = {name: place.here(value) for name, _, value in (word.partition("=") for word in literals)}
    alone.run("store", "init", REDIS_URL=told["admin-url"])
    apply = ("store", "rights", "--apply", "--password-file", "-")
    applied = alone.run(*apply, stdin=told["edge-password"].encode(), REDIS_URL=told["admin-url"]).text
    assert applied.count("user edge is set, kept in its ACL file") == len(place.servers)
    assert "the same on" in alone.run("doctor", REDIS_URL=told["admin-url"]).text
    alone.environment["REDIS_URL"] = told["edge-url"]
    alone.run("queue", "apply", "-f", "-", stdin=b"metadata: {name: invoices}\n")
    assert alone.run("queue", "show", "invoices", "--json").object["ackLevel"] == "replicated:1"
    for number in ("1", "2", "3"):
        alone.run("put", "invoices", number)
        if number != "3":
            place.fail_over()
    assert alone.run("get", "invoices", "--all").text.split() == ["1", "2", "3"]

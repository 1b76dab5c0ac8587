"""The configuration files of docs/examples/pubsub are run as docs/pubsub.md says, on ports that are free here."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from tests.cli.shell import PATIENCE_S, Shell, Up, running
from tests.docs.bench import LEFT
from tests.servers import eventually, free_port
from tests.tmq.process import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "pubsub"
PORT = re.compile(r"(?<=port: )\d+|(?<=localhost:)\d+|(?<=127\.0\.0\.1:)\d+")
THE_TEXT_EDGES = "PENSTOCK_EDGES__PUBSUB__"  # its ports are those of the files; others' are any

RunUp = Callable[..., Up]  # a file, more arguments, environment


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of the folder with other ports, the same in all files, and what the openssl commands make."""
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=LEFT)
    ports: dict[str, int] = {}
    for path in folder.glob("*.yaml"):
        text = path.read_text()
        path.write_text(PORT.sub(lambda found: str(ports.setdefault(found[0], free_port())), text))
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    for name in ("east", "west"):
        issued = authority.issue_cert("localhost", common_name=name)
        (folder / f"{name}.pem").write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(folder / f"{name}.key"))
    return folder


@pytest.fixture
def up(examples: Path) -> Iterator[RunUp]:
    """`penstock up --config FILE`, ready. Each runs in a copy of its own: so do its data and what it prints."""
    with ExitStack() as stack:

        def start(file: str, *arguments: str, **environment: str) -> Up:
            folder = shutil.copytree(examples, examples.with_name(Path(file).stem))
            shell = Shell(folder)
            names = [name for name in shell.environment if name.startswith(THE_TEXT_EDGES)]
            for name in names:
                del shell.environment[name]
            shell.environment |= environment
            return stack.enter_context(running(shell, "--config", file, *arguments))

        yield start


class Client:
    """Of the text service."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(PATIENCE_S)
        self._sock = sock
        self._lines = sock.makefile("rb")

    def close(self) -> None:
        self._lines.close()
        self._sock.close()

    def ask(self, line: str) -> str:
        """The next line that comes."""
        self._sock.sendall(line.encode() + b"\n")
        return self.line()

    def line(self) -> str:
        return self._lines.readline().decode().removesuffix("\n")


class Clients:
    """Makes them, and closes them when a test is over."""

    def __init__(self) -> None:
        self._made: list[Client] = []

    def __call__(self, up: Up, listener: str = "text", authority: Path | None = None) -> Client:
        """authority: whose certificates are trusted; None: no TLS."""
        return self.at(up.told["edges"]["pubsub"]["listeners"][listener]["port"], authority)

    def at(self, port: int, authority: Path | None = None) -> Client:
        sock = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        if authority is not None:
            context = ssl.create_default_context(cafile=str(authority))
            sock = context.wrap_socket(sock, server_hostname="localhost")
        self._made.append(Client(sock))
        return self._made[-1]

    def close(self) -> None:
        for one in self._made:
            one.close()


@pytest.fixture
def client() -> Iterator[Clients]:
    clients = Clients()
    yield clients
    clients.close()


def is_ready(port: int) -> bool:
    """What its health page on 127.0.0.1 says; not yet, if there is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE_S) as page:
            return bool(page.status == 200)
    except urllib.error.HTTPError as error:
        error.close()
        return False


def test_every_file_says_how_it_is_run() -> None:
    for path in EXAMPLES.glob("*.yaml"):
        first = path.read_text().partition("\n")[0]
        assert re.search(rf"penstock (up|serve pubsub|queue apply) (--config|-f) {path.name}$", first), first


def test_alone(up: RunUp, client: Clients) -> None:
    """pubsub.md 2.1: letters beyond ASCII have a listener of their own."""
    alone = up("alone.yaml")
    assert set(alone.told["edges"]["pubsub"]["listeners"]) == {"text", "utf8"}
    plain, wide = client(alone), client(alone, "utf8")
    assert plain.ask("SUBSCRIBE 1 t*") == "OK"
    assert plain.ask("SEND t ü").startswith("ERROR only ASCII")
    assert wide.ask("SEND t ü") == "OK"
    assert plain.line() == r"MESSAGE 1 \xc3\xbc"


def test_two_servers_on_one_store(up: RunUp, examples: Path, client: Clients) -> None:
    """pubsub.md 4.2; and the queues of queues.yaml, which `up` finds beside its settings (5.1, 5.2)."""
    first = up("alone.yaml")
    assert first.told["queues"] == {"orders": "created", "readings": "created"}
    port = int(PORT.findall((examples / "second.yaml").read_text())[0])
    store = json.loads((first.shell.folder / "penstock-data/alone/up.lock").read_text())["url"]
    health = free_port()
    command = [
        "serve",
        "pubsub",
        "--store",
        store,
        "--config",
        "second.yaml",
        "--set",
        f"health.port={health}",
    ]
    second = first.shell.spawn(*command, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: is_ready(health), PATIENCE_S)
        subscriber = client.at(port)
        assert subscriber.ask("SUBSCRIBE 1 order.*") == "OK"
        assert client(first).ask("SEND order.new a pump") == "OK"
        assert subscriber.line() == "MESSAGE 1 a pump"
    finally:
        second.terminate()
        assert second.wait(PATIENCE_S) == 0
    assert first.shell.run("get", "orders", "--store", store).out == b"a pump"


def linked(up: Up, number: int) -> None:
    """It follows so many neighbours."""

    def follows() -> bool:
        told = up.shell.run("log", "show", "--json", "--config", f"{up.shell.folder.name}.yaml").object
        return sum(bool(one["follower"]) for one in told["neighbours"]) == number

    eventually(follows, PATIENCE_S)


def test_three_stores_in_a_chain(up: RunUp, client: Clients) -> None:
    """pubsub.md 4.1, 4.3: neighbours in the file, as a flag, in the environment; nobody there, it is an empty list."""
    a = up("ring-a.yaml", "--set", "edges.pubsub.neighbours=[]")
    assert (
        a.shell.run("config", "--json", "--config", "ring-a.yaml", "--neighbour", "").object["settings"][
            "edges"
        ]["pubsub"]["neighbours"]
        == []
    )
    b = up("ring-b.yaml", "--neighbour", address(a))
    c = up("ring-c.yaml", **{f"{THE_TEXT_EDGES}NEIGHBOURS": address(b)})
    linked(a, 1)
    linked(b, 2)
    linked(c, 1)
    ends = [client(one) for one in (a, c)]
    for end in ends:
        assert end.ask("SUBSCRIBE 1 plant.*") == "OK"
    for one in (c, b):
        assert client(one).ask("SEND plant.pump from one of them") == "OK"
        for end in ends:
            assert end.line() == "MESSAGE 1 from one of them"


def address(up: Up) -> str:
    """For its neighbours."""
    return f"127.0.0.1:{up.told['edges']['pubsub']['listeners']['link']['port']}"


def test_three_stores_in_a_ring(up: RunUp, client: Clients) -> None:
    """pubsub.md 4.3: everybody gets everything once, also while one of the three is down."""
    ring = {name: up(f"ring-{name}.yaml") for name in "abc"}
    for one in ring.values():
        linked(one, 2)
    subscribers = {name: client(one) for name, one in ring.items()}
    for subscriber in subscribers.values():
        assert subscriber.ask("SUBSCRIBE 1 plant.*") == "OK"
    for name, one in ring.items():
        assert client(one).ask(f"SEND plant.{name} from {name}") == "OK"
    for subscriber in subscribers.values():
        assert {subscriber.line() for _ in ring} == {f"MESSAGE 1 from {name}" for name in ring}
    assert ring["b"].end() == 0
    assert client(ring["c"]).ask("SEND plant.x past the gap") == "OK"
    assert subscribers["a"].line() == "MESSAGE 1 past the gap"
    assert subscribers["c"].line() == "MESSAGE 1 past the gap"


def test_tls_on_links(up: RunUp, examples: Path, client: Clients) -> None:
    east, west = up("tls-east.yaml"), up("tls-west.yaml")
    linked(east, 1)
    linked(west, 1)
    authority = examples / "ca.pem"
    subscriber, sender = client(west, authority=authority), client(east, authority=authority)
    assert subscriber.ask("SUBSCRIBE 1 plant.*") == "OK"
    assert sender.ask("SEND plant.pump sealed on its way") == "OK"
    assert subscriber.line() == "MESSAGE 1 sealed on its way"

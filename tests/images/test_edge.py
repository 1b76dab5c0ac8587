"""Test the image of the edges: each edge serves in it and stops on SIGTERM (docs/images.md)."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from protos import tmq
from protos.tmq import Dialect, Operation
from protos.tmq.wire import MQID_BYTES
from services.kit.edge import edges
from tests.cli.shell import ANY_PORT
from tests.e2e.images import Images
from tests.images.container import NAMELESS, STARTING_S, Container, once, started, stopped
from tests.servers import Server, eventually

EDGES = sorted(edges())


@pytest.fixture(scope="module")
def store_url(images: Images, store: Server) -> str:
    """Return the URL of a store that the image's own command line has set up."""
    once(images.of("edge"), ["penstock", "store", "init"], REDIS_URL=store.url)
    return store.url


def serve(images: Images, folder: Path, edge: str, store_url: str, flags: Sequence[str] = ()) -> Container:
    environment = {**ANY_PORT, "REDIS_URL": store_url}
    return Container(images.of("edge"), folder, "serve", edge, environment=environment, flags=flags)


def page(container: Container, path: str) -> int:
    """Return the status of a health page. Raises OSError while the port is closed."""
    (listens,) = eventually(lambda: container.events("health_listening"))
    try:
        with urlopen(f"http://127.0.0.1:{listens['port']}{path}", timeout=10) as answer:
            return int(answer.status)
    except HTTPError as refusal:
        with refusal:
            return refusal.code


@pytest.mark.parametrize(
    ("edge", "user", "flags"), [*((edge, 10001, ()) for edge in EDGES), ("rqp", 123456, NAMELESS)]
)
def test_an_edge_gets_ready_and_ends_with_0(
    images: Images, tmp_path: Path, store_url: str, edge: str, user: int, flags: Sequence[str]
) -> None:
    with serve(images, tmp_path, edge, store_url, flags) as container:
        eventually(lambda: page(container, "/readyz") == 200)
        assert page(container, "/healthz") == 200
        assert container.run("sh", "-c", "grep ^Uid: /proc/1/status").split() == ["Uid:", *[str(user)] * 4]
        assert container.terminate() == 0, container.log()


def test_sigterm_drains_the_edge(images: Images, tmp_path: Path, store_url: str) -> None:
    """Check that SIGTERM drains: clients get a FIN, acknowledged messages are stored (docs/settings.md, drain)."""
    with serve(images, tmp_path, "tmq", store_url) as container:
        place = eventually(lambda: [e for e in container.events("listening") if e["listener"] == "document"])[
            0
        ]
        with socket.create_connection((place["host"], place["port"]), 10) as client:
            client.sendall(tmq.encode_create(b"kept"))
            assert tmq.parse_status(Dialect.DOCUMENT, Operation.CREATE, client.recv(1))
            client.sendall(tmq.encode_open(b"kept"))
            assert tmq.parse_mqid(client.recv(MQID_BYTES)) == tmq.mqid_of(b"kept")
            client.sendall(tmq.encode_enq(tmq.mqid_of(b"kept"), b"body"))
            assert tmq.parse_status(Dialect.DOCUMENT, Operation.ENQ, client.recv(1))
            assert container.terminate() == 0, container.log()
            assert client.recv(1) == b""
    once(images.of("edge"), ["penstock", "put", "kept", "more"], *NAMELESS, REDIS_URL=store_url)
    found = once(images.of("edge"), ["penstock", "get", "kept"], *NAMELESS, REDIS_URL=store_url)
    assert found == "body"


@pytest.mark.parametrize("after_s", STARTING_S)
def test_sigterm_during_startup_exits_with_0(images: Images, after_s: float) -> None:
    environment = {**ANY_PORT, "REDIS_URL": "redis://127.0.0.1:1"}
    with started(images.of("edge"), "serve", "tmq", environment=environment) as name:
        assert stopped(name, after_s) == 0


def test_without_a_store_it_lives_and_is_not_ready(images: Images, tmp_path: Path) -> None:
    with serve(images, tmp_path, "tmq", "redis://127.0.0.1:1") as container:
        eventually(lambda: page(container, "/readyz") == 503)
        assert page(container, "/healthz") == 200


def test_unknown_edge_is_refused_in_one_line(images: Images) -> None:
    with pytest.raises(AssertionError, match=r"ended with 2: penstock: .*there is no edge 'nonsense'"):
        once(images.of("edge"), ["penstock", "serve", "nonsense"])

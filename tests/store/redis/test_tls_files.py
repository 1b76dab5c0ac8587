"""TLS files of a store URL: rejected at start, reported when they vanish later."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.outside.url import BadUrl
from services.store.model.errors import StoreUnavailable
from services.store.redis.tls_files import check_files
from services.store.redis.url import StoreUrl
from tests.kit.authority import Authority
from tests.servers import Server, free_port
from tests.store.desk import Desk, until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with ca.pem, chain.pem, key.pem, and a file without any certificate."""
    folder = tmp_path_factory.mktemp("tls")
    Authority.create(folder)
    (folder / "text").write_text("no certificate")
    return folder


def tls_url(folder: Path, port: int = 1, **files: str) -> str:
    return f"rediss://localhost:{port}?" + "&".join(f"{name}={folder / file}" for name, file in files.items())


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"ssl_ca_certs": "gone"}, "ssl_ca_certs: {folder}/gone cannot be read: No such file or directory"),
        ({"ssl_ca_certs": "text"}, "ssl_ca_certs: {folder}/text has no usable PEM certificate"),
        ({"ssl_certfile": "chain.pem", "ssl_keyfile": "gone"}, "ssl_keyfile: {folder}/gone cannot be read"),
        ({"ssl_certfile": "gone", "ssl_keyfile": "key.pem"}, "ssl_certfile: {folder}/gone cannot be read"),
        ({"ssl_certfile": "chain.pem"}, "ssl_certfile {folder}/chain.pem with the key in {folder}/chain.pem"),
        ({"ssl_keyfile": "key.pem"}, "ssl_keyfile needs ssl_certfile"),
    ],
)
def test_unusable_file_is_named_with_its_option(folder: Path, files: dict[str, str], text: str) -> None:
    with pytest.raises(BadUrl) as error:
        check_files(StoreUrl.parse(tls_url(folder, **files)))
    assert str(error.value).startswith(text.format(folder=folder))


def test_usable_files_are_accepted(folder: Path) -> None:
    files = {"ssl_ca_certs": "ca.pem", "ssl_certfile": "chain.pem", "ssl_keyfile": "key.pem"}
    check_files(StoreUrl.parse(tls_url(folder, **files)))


@pytest.fixture
def tls_server(folder: Path, tmp_path: Path) -> Iterator[tuple[Server, int]]:
    port = free_port()
    files = {"tls-cert-file": "chain.pem", "tls-key-file": "key.pem", "tls-ca-cert-file": "ca.pem"}
    options = {name: str(folder / file) for name, file in files.items()}
    options |= {"tls-port": str(port), "tls-auth-clients": "no"}
    server = Server("redis", tmp_path / "data", options).start()
    yield server, port
    server.end()


async def test_missing_file_is_named_and_used_once_restored(
    folder: Path, tls_server: tuple[Server, int]
) -> None:
    server, port = tls_server
    ca = shutil.copy(folder / "ca.pem", folder / "own.pem")
    async with Desk(tls_url(folder, port, ssl_ca_certs="own.pem")) as desk:
        await desk.store.now_ms()
        ca.unlink()
        await desk.store.now_ms()  # the open connection continues
        server.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises(StoreUnavailable, match=r"ssl_ca_certs: .*own.pem cannot be read: No such file"):
            await desk.store.now_ms()
        shutil.copy(folder / "ca.pem", ca)
        await desk.store.now_ms()
    # TLS shuts down on both sides before the loop ends
    await until(lambda: server.info("clients")["connected_clients"] == "1")

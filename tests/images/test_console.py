"""Test the image of the console: its page and API respond, and it stops on SIGTERM (docs/images.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.e2e.images import Images
from tests.images.container import NAMELESS, STARTING_S, Container, inspect, once, started, stopped
from tests.servers import Server, eventually

MAX_BYTES = 110_000_000  # more than its base
CONFIG = "/etc/penstock.yaml"
TOKEN = "abc"
ANY_PORT = {"PENSTOCK_CONSOLE__PORT": "0", "PENSTOCK_HEALTH__PORT": "0"}


def settings(folder: Path, store_url: str) -> dict[str, Any]:
    """Return settings with one token in a file, as in the chart."""
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    document = {"console": {"tokens": [{"name": "ann", "role": "admin", "sha256": digest}]}}
    (folder / "penstock.yaml").write_text(json.dumps(document))
    (folder / "penstock.yaml").chmod(0o644)
    environment = {**ANY_PORT, "REDIS_URL": store_url, "PENSTOCK_CONFIG": CONFIG}
    return {"environment": environment, "files": {CONFIG: folder / "penstock.yaml"}}


def serve(images: Images, folder: Path, store_url: str, flags: Sequence[str] = ()) -> Container:
    return Container(images.of("console"), folder, **settings(folder, store_url), flags=flags)


def ask(container: Container, path: str, action: str = "listening", **headers: str) -> tuple[int, bytes]:
    """Return status and body of a request. Raises OSError while the port is closed."""
    (listens,) = eventually(lambda: container.events(action))
    request = Request(f"http://127.0.0.1:{listens['port']}{path}", headers=headers)
    try:
        with urlopen(request, timeout=10) as answer:
            return int(answer.status), answer.read()
    except HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read()


def api(container: Container, path: str) -> Any:
    status, body = ask(container, f"/api/v1{path}", Authorization=f"Bearer {TOKEN}")
    assert status == 200, body
    return json.loads(body)


def test_console_serves_page_and_api_and_drains(images: Images, tmp_path: Path, store: Server) -> None:
    once(images.of("edge"), ["penstock", "store", "init"], REDIS_URL=store.url)
    once(images.of("edge"), ["penstock", "queue", "create", "seen"], REDIS_URL=store.url)
    with serve(images, tmp_path, store.url) as container:
        eventually(lambda: ask(container, "/readyz", "health_listening")[0] == 200)
        assert ask(container, "/healthz", "health_listening")[0] == 200
        assert ask(container, "/readyz")[0] == 200
        status, page = ask(container, "/")
        assert (status, b"<html" in page) == (200, True)
        assert json.loads(ask(container, "/openapi.json")[1])["openapi"].startswith("3.1")
        assert ask(container, "/api/v1/overview")[0] == 401
        assert api(container, "/me") == {"who": "ann", "role": "admin", "auth": "token"}
        assert "seen" in [each["name"] for each in api(container, "/queues")["items"]]
        # a pattern over octets needs the one package that edges do not have
        assert api(container, "/queues/seen/dead?body=a%2Bb")["items"] == []
        assert container.run("sh", "-c", "grep ^Uid: /proc/1/status").split() == ["Uid:", *["10001"] * 4]
        assert container.terminate() == 0, container.log()


def test_without_a_store_it_lives_and_is_not_ready_as_any_user(images: Images, tmp_path: Path) -> None:
    with serve(images, tmp_path, "redis://127.0.0.1:1", NAMELESS) as container:
        eventually(lambda: ask(container, "/readyz", "health_listening")[0] == 503)
        assert ask(container, "/healthz", "health_listening")[0] == 200


@pytest.mark.parametrize("after_s", STARTING_S)
def test_sigterm_during_startup_exits_with_0(images: Images, tmp_path: Path, after_s: float) -> None:
    with started(images.of("console"), **settings(tmp_path, "redis://127.0.0.1:1")) as name:
        assert stopped(name, after_s) == 0


def test_public_listener_without_authentication_is_refused(images: Images) -> None:
    with pytest.raises(AssertionError, match=r"set console\.tokens or console\.proxy, or host 127\.0\.0\.1"):
        once(
            images.of("console"),
            ["python", "-m", "services.console", "--set", "console.host=0.0.0.0"],
            REDIS_URL="redis://127.0.0.1:1",
        )


def test_image_is_small(images: Images, base: str) -> None:
    over = inspect(images.of("console"))["Size"] - inspect(base)["Size"]
    print(f"the console's image has {over / 1e6:.0f} MB over its base")
    assert 0 < over <= MAX_BYTES

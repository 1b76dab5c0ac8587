"""Test the local token of a console without configured tokens or proxy."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict

from services.console.access import local_token
from services.console.access.identity import Identities
from services.console.contract.problems import Problem
from services.console.contract.roles import Role
from services.console.settings import ConsoleSettings
from services.kit.config.layers import SettingsError
from tests.console.live_console import PATIENCE_S, LiveConsole
from tests.console.local import HEADERS, LINE, TOKEN
from tests.servers import Server


async def _through_a_proxy(console: LiveConsole, method: str, *, more: bytes = b"") -> int:
    """Send a request as nginx does with `proxy_pass http://127.0.0.1:9180` alone; return the status."""
    body = b'{"ackLevel": "memory"}' if method == "PUT" else b""
    head = (
        b"%s /api/v1/queues/orders HTTP/1.0\r\nHost: 127.0.0.1:9180\r\nConnection: close\r\n"
        % method.encode()
    )
    sent = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body) if body else b""
    reader, writer = await asyncio.open_connection(*console.place)
    writer.write(head + sent + more + b"\r\n" + body)
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
    writer.close()
    return int(answer.split()[1])


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_plain_reverse_proxy_does_not_bypass_the_token(console: LiveConsole, method: str) -> None:
    assert await _through_a_proxy(console, method) == 401
    assert (
        await _through_a_proxy(console, method, more=b"Authorization: Bearer %s0\r\n" % TOKEN.encode()) == 401
    )
    for origin in (b"http://console.example", b"null"):
        for site in (b"", b"Sec-Fetch-Site: same-origin\r\n"):
            assert (
                await _through_a_proxy(console, method, more=LINE + site + b"Origin: %s\r\n" % origin) == 403
            )
    assert await _through_a_proxy(console, method, more=LINE) == (201 if method == "PUT" else 404)


async def test_token_has_the_admin_role_and_is_not_logged(console: LiveConsole) -> None:
    assert await console.found("/me") == {"who": "local", "role": "admin", "auth": "token"}
    assert (await console.ask("PUT", "/queues/orders", {"ackLevel": "memory"})).status == 201
    assert (await console.get("/me", headers={"Authorization": "Bearer wrong"})).status == 401
    assert [(line["who"], line["auth"]) for line in console.audited()] == [("local", "token")]
    shown = (await console.get("/audit")).body + (await console.get("/config")).body
    assert TOKEN.encode() not in shown
    assert not any(TOKEN in str(vars(line)) for line in console.log.lines)


async def test_configured_tokens_replace_it(server: Server) -> None:
    async with LiveConsole(server.url, proxy={"networks": ["10.0.0.0/8"]}) as console:
        assert (await console.get("/me", headers=HEADERS)).status == 401


def test_file_is_private_and_shared_by_consoles(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with ThreadPoolExecutor(8) as pool:  # consoles that start at the same moment agree
        files = set(pool.map(lambda _: local_token.keep(folder), range(8)))
        texts = {file.read_text() for file in files}
    assert files == {folder / local_token.FILE}
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())] == [0o700, 0o600]
    (text,) = texts
    assert len(text.strip()) >= 40
    assert local_token.keep(folder).read_text() == text
    assert local_token.link("http://[::1]:9180/", folder / local_token.FILE).endswith(
        f"/#token={text.strip()}"
    )


def test_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"file/console\.token: .*set store\.data_dir .*console\.tokens"):
        local_token.keep(tmp_path / "file")


def _linked(file: Path) -> None:
    file.rename(file.with_suffix(".elsewhere"))
    file.symlink_to(file.with_suffix(".elsewhere"))


def _replaced(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


UNSAFE = {
    "it is a symbolic link": _linked,
    r"other users have access to it \(mode 0604\)": lambda file: file.chmod(0o604),
    r"other users have access to it \(mode 0620\)": lambda file: file.chmod(0o620),
    "it is not a regular file": _replaced,
}


@pytest.mark.parametrize("problem", UNSAFE)
def test_unsafe_file_is_rejected(tmp_path: Path, problem: str) -> None:
    file = local_token.keep(tmp_path)
    identities = Identities(ConsoleSettings(), file)
    headers = CIMultiDict(Authorization=f"Bearer {file.read_text().strip()}")
    assert identities.identify(headers, "127.0.0.1").role is Role.ADMIN
    UNSAFE[problem](file)
    wanted = rf"console\.token is rejected: {problem}.*; delete the file .*store\.data_dir"
    for use in (lambda: local_token.keep(tmp_path), lambda: local_token.link("http://[::1]:9180/", file)):
        with pytest.raises(SettingsError, match=wanted):
            use()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_file_of_another_user() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        file = local_token.keep(Path(name))
        file.chmod(0o644)
        os.chown(file, 65_533, -1)
        os.seteuid(65_534)
        try:
            with pytest.raises(SettingsError, match="it belongs to uid 65533, this is uid 65534"):
                local_token.read(file)
        finally:
            os.seteuid(0)
        file.chmod(0o600)
        assert local_token.keep(Path(name)) == file


def test_file_system_without_permissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a file system where all files have the same mode, such as WSL's drvfs and CIFS."""

    def made(**where: Any) -> tuple[int, str]:
        number, name = mkstemp(**where)
        os.chmod(name, 0o777)
        return number, name

    mkstemp = tempfile.mkstemp
    monkeypatch.setattr(tempfile, "mkstemp", made)
    with pytest.raises(SettingsError, match=r"mode 0600 has 0777.*console\.tokens .*console\.enabled: false"):
        local_token.keep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_running_console_rejects_an_unsafe_file(tmp_path: Path) -> None:
    file = local_token.keep(tmp_path)
    identities = Identities(ConsoleSettings(), file)
    planted = tmp_path / "planted"
    planted.write_text(TOKEN)
    file.unlink()
    file.symlink_to(planted)
    with pytest.raises(Problem, match="authentication required"):
        identities.identify(CIMultiDict(Authorization=f"Bearer {TOKEN}"), "127.0.0.1")

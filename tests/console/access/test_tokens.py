"""Test files of tokens, at the start and when they change."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from services.console.access.tokens import SHORTEST, Tokens, digest
from services.console.settings import WELL_KNOWN, Token
from services.kit.config.layers import SettingsError
from tests.console.live_console import LiveConsole
from tests.servers import Server

FIRST, SECOND = "the first token of all", "the second one of two"


def of_file(file: Path, name: str = "a", text: str = "") -> Token:
    """Return a token whose file has this text."""
    if text:
        file.write_text(text)
    return Token.model_validate({"name": name, "role": "view", "file": str(file)})


def of_digest(text: str, name: str) -> Token:
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return Token.model_validate({"name": name, "role": "admin", "sha256": sha256})


def who(tokens: Tokens, text: str) -> str | None:
    found = tokens.find(text.encode())
    return found.name if found is not None else None


async def test_token_file_is_read_again(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(FIRST + "\n")
    tokens = [{"name": "a", "role": "view", "file": str(file)}]
    async with LiveConsole(server.url, tokens=tokens) as console:
        assert (await console.get("/me", token=FIRST)).status == 200
        file.write_text(SECOND + "\n")
        assert (await console.get("/me", token=FIRST)).status == 401
        assert (await console.get("/me", token=SECOND)).status == 200
        file.unlink()
        assert (await console.get("/me", token=SECOND)).status == 200
        assert console.log.events("token_reload_failed")


@pytest.mark.parametrize("text", [" \n", "test", "x" * (SHORTEST - 1), "x" * 4097])
def test_invalid_token_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match="16 to 4096 octets; `openssl rand -hex 32` makes one"):
        Tokens([of_file(tmp_path / "token", text=text)])


def test_well_known_tokens_are_too_short_for_a_file() -> None:
    """Check that well-known tokens are too short for a file, so that no further check is needed."""
    short = [b"", b"test"]
    assert {digest(each).hex() for each in short} == WELL_KNOWN
    assert all(len(each) < SHORTEST for each in short)


def test_duplicate_tokens(tmp_path: Path) -> None:
    one = of_file(tmp_path / "one", "ann", FIRST)
    for other in (of_file(tmp_path / "other", "bob", f" {FIRST}\n"), of_digest(FIRST, "bob")):
        with pytest.raises(SettingsError, match="ann, bob have the same token"):
            Tokens([one, other])


@pytest.mark.parametrize("text", ["", "test", "x" * (SHORTEST - 1)])
def test_incomplete_file_keeps_the_previous_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    tokens = Tokens([of_file(tmp_path / "token", text=FIRST)])
    (tmp_path / "token").write_text(text)
    assert who(tokens, FIRST) == "a"
    assert text == "" or who(tokens, text) is None
    assert "`openssl rand -hex 32` makes one" in caplog.text
    (tmp_path / "token").write_text(SECOND)
    assert (who(tokens, FIRST), who(tokens, SECOND)) == (None, "a")


@pytest.mark.parametrize("in_a_file", [True, False], ids=["file", "digest"])
def test_files_that_become_equal_are_rejected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, in_a_file: bool
) -> None:
    file = tmp_path / "one"
    other = of_file(tmp_path / "other", "bob", SECOND) if in_a_file else of_digest(SECOND, "bob")
    tokens = Tokens([of_file(file, "ann", FIRST), other])
    assert (who(tokens, FIRST), who(tokens, SECOND)) == ("ann", "bob")
    file.write_text(SECOND)
    assert (who(tokens, FIRST), who(tokens, SECOND)) == (None, None)
    assert "ann, bob have the same token" in caplog.text
    file.write_text(FIRST)
    assert (who(tokens, FIRST), who(tokens, SECOND)) == ("ann", "bob")


def test_swapped_files(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    tokens = Tokens([of_file(one, "ann", FIRST), of_file(other, "bob", SECOND)])
    one.write_text(SECOND)
    other.write_text(FIRST)
    assert (who(tokens, FIRST), who(tokens, SECOND)) == ("bob", "ann")

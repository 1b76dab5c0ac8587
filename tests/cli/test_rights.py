"""`penstock store rights` prints what ACL SETUSER takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.servers import Server

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def printed(*words: str) -> str:
    command = [sys.executable, "-m", "services.cli.main", "store", "rights", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_page_shows_what_is_printed() -> None:
    told = PAGE.read_text().partition("## store rights\n")[2].partition("\n## ")[0]
    for words in ((), ("--for", "analytics")):
        assert f"$ penstock {' '.join(['store', 'rights', *words])}\n{printed(*words)}\n" in told


def test_the_printed_line_makes_a_user_that_may_work(tmp_path: Path) -> None:
    line = printed("--user", "mover")
    server = Server("valkey", tmp_path / "data").start()
    try:
        assert server.call(*line.split(), ">secret") == b"OK"
        with server.client() as client:
            assert client.call("AUTH", "mover", "secret") == b"OK"
            assert client.call("EXISTS", "ps:{main}:epoch") == 0
    finally:
        server.end()

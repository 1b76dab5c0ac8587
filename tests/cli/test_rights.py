"""`penstock store rights` prints what ACL SETUSER takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.servers import Server


def test_the_printed_line_makes_a_user_that_may_work(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "services.cli.main", "store", "rights", "--user", "mover"]
    line = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    server = Server("valkey", tmp_path / "data").start()
    try:
        assert server.call(*line.split(), ">secret") == b"OK"
        with server.client() as client:
            assert client.call("AUTH", "mover", "secret") == b"OK"
            assert client.call("EXISTS", "ps:{main}:epoch") == 0
    finally:
        server.end()

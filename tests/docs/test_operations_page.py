"""Check docs/operations.md, "A store of your own": from starting a server to an edge that may use it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs.bench import commands
from tests.docs.session import Session
from tests.sysv.namespace import own_machine

PAGE = "docs/operations.md"
ACCEPTS = "Ready to accept connections"


def test_a_store_of_your_own() -> None:
    with own_machine(), TemporaryDirectory(prefix="p") as folder:
        session = Session(Path(folder), "tutorials")
        try:
            touch, server, *rest = commands(PAGE, "## A store of your own")
            session.follow(touch)
            session.start_up(server.line, ready=ACCEPTS)
            for command in rest:
                session.follow(command)
            session.press_ctrl_c_in(1, 0)
            session.start_up(server.line, ready=ACCEPTS)
            assert "edge" in session.run("redis-cli ACL USERS").split()
            session.press_ctrl_c_in(2)
        finally:
            session.clear()

"""Run commands that send a message to another system and wait, on a store without edges."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any

from services.cli.commands.confirmation import Confirmation
from services.cli.terminal.exits import Failure
from services.cli.terminal.output import Output
from services.store import QueueSpec, Store
from services.store.model import records
from services.store.model.delivery import Delivery
from services.store.pipeline.async_client import AsyncClient
from tests.cli.shell import Shell
from tests.servers import Server, eventually

GOAL = "away"
REMOTE = {"protocol": "rqp-mca", "queueId": 7}


def declare(shell: Shell, **spec: Any) -> None:
    document = QueueSpec.model_validate({"remote": REMOTE, **spec})
    shell.with_store(lambda store: store.catalogue.declare(GOAL, document, "test", replace=True))


class Sending:
    """A running command that waits."""

    def __init__(self, shell: Shell, *options: str, as_json: bool = True) -> None:
        self.shell = shell
        words = ("--json",) if as_json else ()
        command = ("rqp", "send", "--queue-id", "7", "--wait", *words, *options, "a message")
        self.process = shell.spawn(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        eventually(lambda: shell.stats(GOAL)["added"] or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()

    def end(self, code: int) -> tuple[dict[str, Any], str]:
        """Check the exit code; return the command's JSON and its last line."""
        out, err = self.process.communicate(timeout=30)
        assert self.process.returncode == code, (out, err)
        # after Ctrl-C the terminal shows an empty line
        lines = [line for line in err.decode().splitlines() if line]
        assert "Traceback" not in err.decode()
        return json.loads(out) if out else {}, lines[-1] if lines else ""

    def work(self, what: Callable[[Store, AsyncClient, list[Delivery]], Awaitable[Any]]) -> None:
        """Take the message as another program, and process it."""

        async def session(store: Store) -> None:
            queue = await store.catalogue.find(GOAL)
            pipe = store.open_domain(queue.domain).pipe
            await pipe.ready()
            client = AsyncClient(pipe)
            await what(store, client, await client.take(queue, 10))

        self.shell.with_store(session)


def tracking_keys(server: Server) -> list[bytes]:
    return [key for key in server.call("KEYS", "ps:*") if b":fate:" in key]


async def confirmed(store: Store, timeout_s: float | None, *, as_json: bool = True) -> str:
    """Return '' if it was confirmed; else the label that the command ends with."""
    waiting = Confirmation(store, Output(as_json=as_json), await store.catalogue.find(GOAL), is_certain=True)
    try:
        await waiting.wait(records.encode(b"a message"), timeout_s)
    except Failure as failure:
        return f"{int(failure.exit)} {failure.label}"
    return ""

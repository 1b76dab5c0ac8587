"""A node in a separate process with its log and HTTP pages: `python -m tests.ring.links.program`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from services.kit.workers.run import main
from services.system.pdeathsig import die_with_parent
from tests.ring.links.live import BRISK, GROUP, NODE_ALONE, QUICK
from tests.servers import PATIENCE_S, eventually

ROOT = Path(__file__).parents[3]


class NodeProgram:
    """A node program. `settings` as after `--set`, below `edges.ring`. `module`: services.ring is the real edge."""

    def __init__(
        self,
        url: str,
        folder: Path,
        beacon_port: int,
        *settings: str,
        module: str = "tests.ring.links.program",
    ) -> None:
        self._log = folder / f"node-{id(self):x}.log"
        times = [f"node.times.{name}={value}" for name, value in QUICK.items()]
        waits = [f"store.{name}={value}" for name, value in BRISK.items()]
        own = (
            "listeners.clients=off",
            "listeners.ring.port=0",
            f"node.group={GROUP}",
            f"node.beacon_port={beacon_port}",
            *times,
            *waits,
            *settings,
        )
        pairs = [
            word
            for each in ("health.port=0", *(f"edges.ring.{one}" for one in own))
            for word in ("--set", each)
        ]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, *pairs],
                cwd=ROOT,
                env={**os.environ, "PENSTOCK_STORE__URL": url, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )

    def text(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def events(self, action: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.text().splitlines(keepends=True) if line.endswith("}\n")]
        return [line for line in lines if line.get("action") == action]

    def page(self, path: str) -> bytes:
        event = self.events("health_listening")[0]
        with urllib.request.urlopen(
            f"http://{event['host']}:{event['port']}{path}", timeout=PATIENCE_S
        ) as response:
            found: bytes = response.read()
        return found

    def has_started(self) -> bool:
        assert self.process.poll() is None, self.text()
        return bool(self.events("started") and self.events("ring_node_there"))

    def status(self) -> dict[str, Any]:
        """Return the node's status."""
        found: dict[str, Any] = json.loads(self.page("/ring"))
        return found

    def kill9(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def end(self) -> None:
        if self.process.poll() is None:
            self.kill9()


def started(programs: Sequence[NodeProgram]) -> None:
    for program in programs:
        eventually(program.has_started)


def is_led_ring(programs: Sequence[NodeProgram]) -> bool:
    """Return whether the nodes report one ring of all of them, with one leader that all know."""
    statuses = [program.status() for program in programs]
    following = {one["name"]: (one["successor"] or {}).get("name") for one in statuses}
    at, seen = statuses[0]["name"], set()
    while at in following and at not in seen:
        seen.add(at)
        at = following[at]
    leaders = {one["name"] for one in statuses if one["is_leader"]}
    return (
        seen == following.keys()
        and at == statuses[0]["name"]
        and len(leaders) == 1
        and all_know(statuses, leaders)
    )


def all_know(statuses: Sequence[dict[str, Any]], leaders: set[str]) -> bool:
    return all(one["leader"] in leaders and one["predecessor"] is not None for one in statuses)


if __name__ == "__main__":
    sys.exit(main(NODE_ALONE))

"""Run the operator as a process, with its log and its pages."""

from __future__ import annotations

import json
import os
import re
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.kubernetes.cluster import Cluster
from tests.operator.forking import forked
from tests.servers import eventually, free_port

ROOT = Path(__file__).parents[2]
PATIENCE_S, END_S = 30.0, 60.0


class OperatorProgram:
    """An operator process. `settings` are PENSTOCK_OPERATOR_<NAME>, in lower case."""

    def __init__(self, cluster: Cluster, store: str, folder: Path, **settings: object) -> None:
        self.port = free_port()
        fields = {"health_port": self.port, "log_level": "INFO", **settings}
        self.environment = {
            **os.environ,
            **cluster.environment,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}",
            "PENSTOCK_STORE__URL": store,
            "POD_NAMESPACE": str(settings.get("namespaces", "default")).split(",")[0].replace("*", "default"),
            **{f"PENSTOCK_OPERATOR_{name.upper()}": str(value) for name, value in fields.items()},
        }
        self._log = folder / f"operator-{self.port}.log"
        self.process: ForkServerProcess | None = None

    def start(self) -> Self:
        """Start without waiting."""
        self.process = forked(self.environment, self._log)
        return self

    def ended(self) -> int:
        """Wait until the process exits unprompted, and return its exit status."""
        assert self.process is not None
        return _status(self.process)

    def command(self, *words: str) -> tuple[int, str]:
        """Run another command with its settings to the end; return exit status and log."""
        log = self._log.with_suffix(f".{words[0]}")
        return _status(forked(self.environment, log, *words)), log.read_text("utf-8", "replace")

    def ready(self) -> Self:
        """Wait until the operator is ready, and return it."""
        try:
            eventually(lambda: self.page("readyz")[0] == 200, PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.text()[-3000:]}") from error
        return self

    def page(self, name: str) -> tuple[int, str]:
        """Return status and text of a page; (0, '') if the port is closed."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/{name}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of all samples with this name and these labels."""
        total = 0.0
        for line in self.page("metrics")[1].splitlines():
            found = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
            if found and all(f'{label}="{value}"' in (found[1] or "") for label, value in labels.items()):
                total += float(found[2])
        return total

    def text(self) -> str:
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""

    def events(self, action: str) -> list[dict[str, Any]]:
        """Return the lines of its log with this action."""
        lines = (json.loads(line) for line in self.text().splitlines() if line.startswith("{"))
        return [line for line in lines if line.get("action") == action]

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.join()

    def stop(self) -> int:
        """Stop with SIGTERM; return the exit status."""
        assert self.process is not None
        self.process.terminate()
        return _status(self.process)

    def memory(self) -> int:
        """Return its resident memory in bytes (RSS)."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found
        return int(found[1]) * 1024


def _status(process: ForkServerProcess) -> int:
    """Return the exit status of a process that ends within a minute."""
    process.join(END_S)
    assert process.exitcode is not None, "the operator does not end"
    return process.exitcode

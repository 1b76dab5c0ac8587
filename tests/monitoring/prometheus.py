"""A real Prometheus of Debian, which scrapes given targets like a monitor of the chart."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from os import getpid
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

import yaml

from services.system.pdeathsig import die_with_parent
from tests.servers import eventually, free_port

INTERVAL_S = 1  # of scrapes and checks: nothing changes between two scrapes


def scraped(condition: Callable[[], Any], until: Callable[[Any], bool] = bool) -> Any:
    """Like `eventually`, with a check after each scrape."""
    return eventually(condition, until=until, pause_s=INTERVAL_S)


@dataclass(frozen=True, slots=True)
class Target:
    """`labels` are added to its series, such as the name of a pod."""

    host: str
    port: int
    labels: Mapping[str, str] = field(default_factory=dict)


class Prometheus:
    def __init__(
        self, folder: Path, jobs: Mapping[str, Iterable[Target]], rules: object | None = None
    ) -> None:
        """rules: the document of a rules file."""
        folder.mkdir()
        self.port = free_port()
        self._folder = folder
        configuration: dict[str, Any] = {
            "global": {"scrape_interval": f"{INTERVAL_S}s", "evaluation_interval": f"{INTERVAL_S}s"},
            "scrape_configs": [
                {"job_name": job, "static_configs": [_static(target) for target in targets]}
                for job, targets in jobs.items()
            ],
        }
        if rules is not None:
            (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
            configuration["rule_files"] = ["rules.yaml"]
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        program = shutil.which("prometheus")
        assert program, "there is no `prometheus`: tools/system kubernetes"
        command = [program, "--config.file=prometheus.yaml", f"--web.listen-address=127.0.0.1:{self.port}"]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--storage.tsdb.path=data", "--log.level=warn"],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=partial(die_with_parent, getpid()),
            )
        eventually(self._is_ready)
        return self

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        with urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)

    def end(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def ask(self, path: str, **words: str) -> Any:
        """Return the response of its API."""
        place = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        with urlopen(place, timeout=20) as answer:
            response = json.load(answer)
        assert response["status"] == "success", response
        assert not response.get("warnings"), response
        return response["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return labels and value of each current series."""
        found = self.ask("query", query=expression)
        assert found["resultType"] == "vector", found
        return [(each["metric"], float(each["value"][1])) for each in found["result"]]

    def values(self, label: str, match: str = "") -> set[str]:
        """Like Grafana's label_values."""
        return set(self.ask(f"label/{label}/values", **({"match[]": match} if match else {})))

    def firing(self) -> dict[str, list[dict[str, str]]]:
        """Return the labels of each firing alert, by its name."""
        found: dict[str, list[dict[str, str]]] = {}
        for each in self.ask("alerts")["alerts"]:
            if each["state"] == "firing":
                labels = dict(each["labels"])
                found.setdefault(labels.pop("alertname"), []).append(labels)
        return found

    def targets(self) -> dict[str, str]:
        """Return the result of the last scrape by pod: 'up', or the error."""
        return {
            each["labels"].get("pod", each["scrapeUrl"]): each["lastError"] or each["health"]
            for each in self.ask("targets")["activeTargets"]
        }


def _static(target: Target) -> dict[str, Any]:
    return {"targets": [f"{target.host}:{target.port}"], "labels": dict(target.labels)}

"""Outside Kubernetes: a real Prometheus scrapes a `penstock up`, and has the alerts of docs/examples/prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.kit.config.settings import GlobalSettings
from tests.chart.chart import CHART
from tests.cli.shell import Shell, Up, running
from tests.monitoring.conftest import NewPrometheus
from tests.monitoring.hurry import WINDOW, ends, ends_are_known, hurried, sounds
from tests.monitoring.prometheus import Prometheus, Target
from tests.servers import eventually

EXAMPLES = CHART.parents[1] / "docs" / "examples" / "prometheus"
# of a node that is alone, until it closes a ring with itself: within minutes, which rules wait that nobody hurries
AT_FIRST = {"PenstockRingNeighbourMissing", "PenstockRingWithoutLeader"}


def example(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / name).read_text())


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "up"
    folder.mkdir()
    return Shell(folder)


@pytest.fixture
def up(shell: Shell) -> Iterator[Up]:
    with running(shell) as started:
        yield started


@pytest.fixture
def prometheus(up: Up, new_prometheus: NewPrometheus) -> Prometheus:
    """With the example's targets, a process each, but for their ports, which a test may not have."""
    (job,) = example("prometheus.yaml")["scrape_configs"]
    ((targets,),) = [[config["targets"] for config in job["static_configs"]]]
    processes = [*(up.told["edges"][name] for name in sorted(up.told["edges"])), up.told["console"]]
    first = GlobalSettings().health.port
    assert targets == [f"127.0.0.1:{first + number}" for number in range(len(processes))]
    there = [Target(each["health"]["host"], each["health"]["port"]) for each in processes]
    rules = hurried(example("alerts.yaml")["groups"])
    found = new_prometheus({job["job_name"]: there}, rules=rules)
    eventually(lambda: set(found.targets().values()) == {"up"})
    eventually(lambda: found.query(f"count_over_time(penstock_ready[1m:1s]) > {WINDOW[:-1]}"))
    return found


def test_they_sound_of_a_job_and_its_processes(shell: Shell, up: Up, prometheus: Prometheus) -> None:
    ends_are_known(prometheus)
    assert prometheus.firing().keys() <= AT_FIRST
    shell.run("queue", "create", "last", "--max-length", "1", "--overflow", "dead_letter_oldest")
    for body in ("one", "two"):
        shell.run("put", "last", body)
    (labels,) = sounds(prometheus, "PenstockDeadLetters")
    assert labels == {"job": "penstock", "queue": "_other", "severity": "warning"}
    ends(prometheus, ["PenstockDeadLetters"])
    up.kill()
    down = eventually(
        lambda: prometheus.firing().get("PenstockPodDown", []), until=lambda found: len(found) == 5
    )
    assert {labels["instance"] for labels in down} == {
        f"{each['health']['host']}:{each['health']['port']}"
        for each in (*up.told["edges"].values(), up.told["console"])
    }

"""Test the bounds of settings, by flags and by the chart, and removed flags."""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from services.analytics.__main__ import analytics
from services.analytics.failures import USAGE
from services.analytics.flags import REMOVED, SETTINGS
from services.analytics.settings import BOUNDS, MOST_DIGITS, Settings, SettingsError

SCHEMA = Path(__file__).parents[2] / "charts/penstock/values.schema.json"
CHART = {
    "clock_slack_s": "clockSlackSeconds",
    "patience_s": "patienceSeconds",
    "maintenance_s": "maintenanceSeconds",
}
STORE = "redis://127.0.0.1:1"
OF_THE_CHART = sorted({*BOUNDS} - {"continuous_s"})  # a CronJob repeats the run instead


@pytest.fixture(autouse=True)
def _logs_go_where_they_went() -> Iterator[None]:
    """Restore logging after a job, whose output is closed then."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def flag(name: str) -> str:
    names = {setting: own for own, setting in SETTINGS.items()}
    return f"--{names.get(name, name).replace('_', '-')}"


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def refused(output: Path, *flags: str) -> str:
    done = CliRunner().invoke(analytics, ["run", "--store", STORE, "--output", str(output), *flags])
    assert done.exit_code == USAGE, (done.output, done.exception)
    assert not output.exists()
    return done.output


def settings(**told: Any) -> Settings:
    return Settings(**{"store": STORE, "output": "/o", "run": "r1", **told})


def test_a_command_in_this_process_leaves_signals_as_they_were(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    refused(tmp_path / "out", "--run-id", "a/b")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_every_number_has_bounds() -> None:
    numbers = {each.name for each in fields(Settings) if each.type in ("int", "float")}
    assert numbers - {"objective"} == {*BOUNDS}


@pytest.mark.parametrize("name", [*BOUNDS])
def test_a_flag_has_them(name: str, tmp_path: Path) -> None:
    least, most = BOUNDS[name]
    for value in (least - 1, most + 1, 10**30, "²"):
        assert flag(name) in refused(tmp_path / "out", flag(name), str(value))
    refused(tmp_path / "out", flag(name), "nan")


@pytest.mark.parametrize("name", OF_THE_CHART)
def test_the_chart_has_them(name: str) -> None:
    job = json.loads(SCHEMA.read_text())["properties"]["analytics"]["properties"]["job"]["properties"]
    found = job[CHART.get(name, camel(name))]
    assert (found["minimum"], found["maximum"]) == BOUNDS[name]
    assert job["bodies"]["maximum"] == 10**MOST_DIGITS - 1
    assert job["bodies"]["pattern"] == f"^(none|full|[0-9]{{1,{MOST_DIGITS}}})$"


@pytest.mark.parametrize("bodies", ["²", "٣", "-1", "", "1e3", "1" * 10, "9" * 5000, "None"])
def test_octets_of_a_body_are_a_number(bodies: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="none, full, or a number of octets"):
        settings(bodies=bodies)
    refused(tmp_path / "out", "--bodies", bodies)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 200, "latest"])
def test_a_run_has_a_name_that_is_no_path(name: str) -> None:
    with pytest.raises(SettingsError, match="run id"):
        settings(run=name)


@pytest.mark.parametrize("objective", [0.0, 1.0, -0.5, float("nan")])
def test_an_objective_is_between_0_and_1(objective: float) -> None:
    with pytest.raises(SettingsError, match="objective"):
        settings(objective=objective)


@pytest.mark.parametrize("pattern", ["", "(", r"(?=a)"])
def test_a_pattern_is_one_of_re2(pattern: str) -> None:
    with pytest.raises(SettingsError, match=r"redact .*use the syntax of RE2"):
        settings(redact=(pattern,))


@pytest.mark.parametrize("name", [*REMOVED])
def test_a_removed_flag_is_refused_with_what_replaces_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f"{name} is no longer a flag: {REMOVED[name]}"
    assert said in " ".join(refused(tmp_path / "out", name, "5").split())
    monkeypatch.setenv(f"PENSTOCK_ANALYTICS_{name.removeprefix('--').replace('-', '_').upper()}", "5")
    assert said in " ".join(refused(tmp_path / "out").split())


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"master": "mesos://x"}, "use a Spark master"),
        ({"driver_memory": "100m"}, "at least 450m"),
        ({"conf": ("spark",)}, "use NAME=VALUE"),
    ],
)
def test_settings_of_spark_are_checked(told: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        settings(**told)

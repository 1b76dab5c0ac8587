"""Test the bounds of settings, by flags, by the chart and in a saved plan."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.errors import PySparkException
from services.analytics.plan import KINDS, Plan, Planned
from services.analytics.publish import Ready
from services.analytics.state import State

from services.analytics import __main__
from services.analytics.__main__ import FAILED, USAGE, analytics
from services.analytics.settings import MOST_DIGITS, SHAPES, TIMES_S, Settings, SettingsError, Shape

SCHEMA = Path(__file__).parents[2] / "charts/penstock/values.schema.json"
FLAGS = {"clock_slack_s": "--clock-slack"}
CHART = {"clock_slack_s": "clockSlackSeconds", "lock_s": "lockSeconds", "patience_s": "patienceSeconds"}
STORE = "redis://127.0.0.1:1"
PLAN = Plan(
    "r1", "abc", 5, "", ["2026-01-01T00"], Shape(redact=("a",)), {"k": Planned(KINDS[0], "0-0", "5-1", 3, 3)}
)
READY = Ready("r1", [("a", "b")], ["c"], State(last_run="r1", newest="2026-01-01T00", streams={"k": "5-1"}))


@pytest.fixture(autouse=True)
def _logs_go_where_they_went() -> Iterator[None]:
    """Restore logging after a job, whose output is closed then."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def with_number(name: str, value: int) -> Shape:
    told: dict[str, Any] = {name: value}
    return Shape(**told)


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def refused(output: Path, *flags: str) -> str:
    done = CliRunner().invoke(analytics, ["--store", STORE, "--output", str(output), *flags])
    assert done.exit_code == USAGE, (done.output, done.exception)
    assert not output.exists()
    return done.output


def test_every_number_has_bounds() -> None:
    assert {each.name for each in fields(Shape) if each.type == "int"} == {*SHAPES}
    assert {each.name for each in fields(Settings) if each.type == "float"} == {*TIMES_S}


@pytest.mark.parametrize("name", [*SHAPES, *TIMES_S])
def test_a_flag_has_them(name: str, tmp_path: Path) -> None:
    flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
    least, most = (SHAPES | TIMES_S)[name]
    for value in (least - 1, most + 1, 10**30, "²"):
        assert flag in refused(tmp_path / "out", flag, str(value))
    refused(tmp_path / "out", flag, "nan")


@pytest.mark.parametrize("name", ["begun.json", "lock.json", "a.writing"])
def test_no_run_is_named_like_a_file_of_the_output(name: str, tmp_path: Path) -> None:
    assert "reserved for files" in refused(tmp_path / "out", "--run-id", name)


@pytest.mark.parametrize("name", [*SHAPES, *TIMES_S])
def test_the_chart_has_them(name: str) -> None:
    job = json.loads(SCHEMA.read_text())["properties"]["analytics"]["properties"]["job"]["properties"]
    found = job[CHART.get(name, camel(name))]
    assert (found["minimum"], found["maximum"]) == (SHAPES | TIMES_S)[name]
    assert job["bodies"]["maximum"] == 10**MOST_DIGITS - 1
    assert job["bodies"]["pattern"] == f"^(none|full|[0-9]{{1,{MOST_DIGITS}}})$"


@pytest.mark.parametrize("bodies", ["²", "٣", "-1", "", "1e3", "1" * 10, "9" * 5000, "None"])
def test_octets_of_a_body_are_a_number(bodies: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="none, full, or a number of octets"):
        Shape(bodies=bodies)
    refused(tmp_path / "out", "--bodies", bodies)


def without(told: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key != name}


@pytest.mark.parametrize("document", [PLAN, READY, READY.state])
def test_what_is_written_down_is_read_as_it_was(document: Plan | Ready | State) -> None:
    told = json.loads(json.dumps(document.to_json()))
    assert type(document).from_json(told) == document
    assert type(document).from_json(told | {"version": 1}) == document
    unknown: list[Any] = [{}, None, [], 3, {"version": 9}, told | {"version": True}, told | {"colour": "red"}]
    for wrong in unknown:
        with pytest.raises(ValueError):
            type(document).from_json(wrong)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"version": 3}, "its version is 3, but this program reads 1 and 2"),
        ({"streams": []}, "streams: "),
        ({"streams": {"k": {**PLAN.to_json()["streams"]["k"], "end": "soon"}}}, "streams.k.end: "),
        ({"streams": {"k": {**PLAN.to_json()["streams"]["k"], "kind": "live"}}}, "streams.k.kind: "),
        ({"streams": {"k": {}}}, "streams.k.kind: "),
        (
            {"shape": {**Shape().to_json(), "retention_days": 999_999}},
            "shape: retention_days 999999: use a number from 0 to",
        ),
        ({"shape": {**Shape().to_json(), "bodies": "²"}}, "shape: bodies '²'"),
        ({"shape": {**Shape().to_json(), "colour": 1}}, "shape.colour: "),
        ({"again": ["2026-99-01T00"]}, "again.0: "),
        ({"closed": "yesterday"}, "closed: it is not an hour"),
        ({"now_ms": None}, "now_ms: "),
    ],
)
def test_a_plan_that_cannot_be_carried_out_says_where(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}"):
        Plan.from_json(PLAN.to_json() | changed)


@pytest.mark.parametrize("output", ["", "s3a://", "{file}", "{file}/below", "x://y"])
def test_an_output_that_cannot_be_is_refused_before_anything_is_begun(output: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    words = ["--store", STORE, "--output", output.format(file=tmp_path / "taken")]
    done = CliRunner().invoke(analytics, words)
    told = json.loads(done.output)  # one line, without lines of Spark
    assert (done.exit_code, told["code"], told["action"]) == (USAGE, USAGE, "failed")
    assert told["message"].startswith("output ")


@pytest.mark.parametrize(
    "master",
    [
        "",
        "local",
        "local[2]",
        "local[*,3]",
        "local[2, 4]",
        "local-cluster[2,1,1024]",
        "spark://h:7077",
        "k8s://https://h",
        "yarn",
    ],
)
def test_masters_are_sparks(master: str) -> None:
    assert Settings(STORE, "/o", "r1", master=master).master == master


@pytest.mark.parametrize(
    "master",
    [
        "bogus",
        "local[",
        "local[0]",
        "local[2,]",
        "local[ 2]",
        "local[x]",
        "local[²]",
        "spark://",
        "mesos://h:1",
    ],
)
def test_others_are_refused_by_the_name_of_their_flag(master: str, tmp_path: Path) -> None:
    assert f"--master '{master}'" in json.loads(refused(tmp_path / "out", "--master", master))["message"]


@pytest.mark.parametrize("memory", ["2g", "512M", "450m", "460800k", "471859200", "1t"])
def test_memory_is_as_java_has_it(memory: str) -> None:
    assert Settings(STORE, "/o", "r1", driver_memory=memory).driver_memory == memory


@pytest.mark.parametrize("memory", ["", "abc", "10m", "449m", "2gb", "2 g", "-2g", "1.5g", "٢g", "9" * 5000])
def test_other_memory_is_refused_by_the_name_of_its_flag(memory: str, tmp_path: Path) -> None:
    told = json.loads(refused(tmp_path / "out", "--driver-memory", memory))["message"]
    assert told.startswith(f"--driver-memory '{memory}': use a size such as 2g or 1500m")


def test_the_charts_memory_is_as_java_has_it() -> None:
    pattern = json.loads(SCHEMA.read_text())["properties"]["analytics"]["properties"]["driverMemory"][
        "pattern"
    ]
    assert all(re.search(pattern, memory) for memory in ("", "2g", "1500m"))
    assert not any(re.search(pattern, memory) for memory in ("2gb", "0g", "2", "x"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[X] Job aborted: org.apache.spark.api.python.PythonException: Traceback\n"
            '  File "x.py", line 1, in read\npyarrow.lib.ArrowInvalid: half\n'
            "services.analytics.places.OutputError: output a/b.parquet cannot be read: half\n\n"
            "\tat org.apache.spark.Runner\nCaused by: services.x: y",
            "output a/b.parquet cannot be read: half",
        ),
        ("[X] it failed\nat x\nCaused by: java.Error: y", "[X] it failed | Caused by: java.Error: y"),
    ],
)
def test_last_line_has_what_a_task_of_spark_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    def fail(_: str) -> None:
        raise PySparkException(text)

    monkeypatch.setattr(__main__, "check", fail)
    done = CliRunner().invoke(analytics, ["--store", STORE, "--output", str(tmp_path / "out")])
    last = json.loads(done.output)
    assert (done.exit_code, last["code"], last["message"]) == (FAILED, FAILED, told)


def test_whatever_ends_a_run_is_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(_: str) -> None:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(__main__, "check", faulty)
    done = CliRunner().invoke(analytics, ["--store", STORE, "--output", str(tmp_path / "out")])
    told = json.loads(done.output)
    assert (done.exit_code, told["code"], told["action"]) == (FAILED, FAILED, "failed")
    assert told["message"].startswith("internal error: OverflowError: date value out of range; the next run")
    assert "in faulty" in told["exc_info"]

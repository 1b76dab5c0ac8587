"""The wall clock may be stepped, so only one module reads it, and others for the purposes named here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READERS = {"time": ("time", "time_ns"), "datetime": ("now", "utcnow", "today"), "date": ("today",)}
ALLOWED = {  # where it is not compared with a time of the store, and why
    "services/store/model/clock.py": "compares it with the store's clock and the boot clock",
    "services/store/processes/presence.py": "shown: when the process began",
    "services/store/tracing/spans.py": "traces: collectors compare it with other programs' wall clocks",
    "services/store/tracing/trace_propagation.py": "traces",
    "services/store/deadletters/dead_letters.py": "traces",
    "services/store/pipeline/traced.py": "traces",
    "services/kit/tracing/http.py": "a collector's Retry-After is a date of its wall clock",
    "services/kit/workers/scratch.py": "times of files are the wall clock's",
    "services/sysv/journal_file.py": "part of the name of a file",
    "services/analytics/preflight.py": "refuses a store whose clock is far from it",
    "services/analytics/job.py": "the name of a run",
    "services/analytics/bronze/ingest.py": "times of files and commits in Delta's log are the wall clock's",
    "services/analytics/__main__.py": "the name of a run",
    "operator/penstock_operator/store/datasets.py": "a measure that Prometheus compares with its wall clock",
    "operator/penstock_operator/status/statuses.py": "conditions of Kubernetes have times of the wall clock",
    "operator/penstock_operator/uninstall_finalizers.py": "conditions of Kubernetes",
    "operator/penstock_operator/status/events.py": "events of Kubernetes",
}


def reads_wall_clock(source: str) -> bool:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            if {name.name for name in node.names} & {*READERS["time"]}:
                return True
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value).rpartition(".")[2]
            if node.attr in READERS.get(owner, ()):
                return True
    return False


def test_only_named_modules_read_the_wall_clock() -> None:
    files = [file for folder in ("services", "operator", "protos") for file in (ROOT / folder).rglob("*.py")]
    found = {str(file.relative_to(ROOT)) for file in files if reads_wall_clock(file.read_text())}
    advice = "use services.store.model.clock, or name the module above with a reason"
    assert found == set(ALLOWED), advice


@pytest.mark.parametrize(
    "source",
    [
        "time.time()",
        "f(time.time_ns)",
        "datetime.now(UTC)",
        "datetime.datetime.now()",
        "from time import time",
    ],
)
def test_every_way_of_reading_the_wall_clock_is_found(source: str) -> None:
    assert reads_wall_clock(source)
    assert not reads_wall_clock("time.monotonic() + loop.time() + clock.now()")

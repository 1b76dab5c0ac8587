"""Run the job as `penstock analytics run` in processes of its own: seconds, and memory in use."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

LOOK_S = 0.25
PSS = re.compile(r"^Pss:\s+(\d+) kB", re.M)
TIMEOUT_S = 3600.0
ENDING_S = 30.0  # Spark needs time to stop
JAVA, PYTHON = "java", "python"


@dataclass(frozen=True, slots=True)
class Ended:
    """The figures of a run of the job."""

    seconds: float  # from the start of the command to its end
    spark_s: float  # of them, those after the start of Spark; 0 if it was not started
    memory_mib: dict[str, float]  # at most, by program and `all`; memory that processes share counts once
    steps: dict[str, float]
    dead: int  # records that were read
    samples: int

    @property
    def records(self) -> int:
        return self.dead + self.samples


def run_job(store: str, output: Path, run: str, cores: int) -> Ended:
    """Run the job once on some cores. Raises OSError if it failed or could not use a record."""
    pinned = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))
    words = ["taskset", "-c", pinned, sys.executable, "-m", "services.cli", "analytics", "run"]
    words += ["--store", store, "--output", str(output), "--run-id", run, "--master", f"local[{cores}]"]
    log = output.with_name(f"{output.name}-{run}.log")
    began = time.time()
    with log.open("wb") as written:
        process = subprocess.Popen(words, stdout=written, stderr=written, start_new_session=True)
    try:
        with _watched(process.pid) as memory:
            code = process.wait(TIMEOUT_S)
        ended = time.time()
    except subprocess.TimeoutExpired:
        raise OSError(f"the job did not end within {TIMEOUT_S:.0f} s") from None
    finally:
        _end(process)
    lines = _lines(log)
    if code:
        raise OSError(f"the job ended with {code}: {lines[-1:]}")
    return _ended(lines, began, ended, memory)


def _ended(lines: list[dict[str, Any]], began: float, ended: float, memory: dict[str, float]) -> Ended:
    if not (told := _told(lines, "done")):
        raise OSError(f"the job did nothing: {lines[-1:]}")
    done = json.loads(told[0]["summary"])
    if bad := done["dead_quarantined"] + done["samples_quarantined"]:
        raise OSError(f"{bad} records went to the quarantine")
    started = [ended - _time(line) for line in _told(lines, "started")]
    return Ended(ended - began, sum(started), dict(memory), done["seconds"], done["dead"], done["samples"])


def _told(lines: list[dict[str, Any]], action: str) -> list[dict[str, Any]]:
    return [each for each in lines if each.get("action") == action]


def _lines(log: Path) -> list[dict[str, Any]]:
    """Return the job's log records, without Spark's own output."""
    text = log.read_text(errors="replace").splitlines()
    return [json.loads(line) for line in text if line.startswith("{") and line.endswith("}")]


def _time(line: dict[str, Any]) -> float:
    return datetime.fromisoformat(line["time"]).timestamp()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the job if it still runs, and all that it has started."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(ENDING_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def _watched(leader: int) -> Iterator[dict[str, float]]:
    """Yield a dict for the greatest memory of a session by program and `all`, MiB."""
    most, over = dict.fromkeys(("all", JAVA, PYTHON), 0.0), threading.Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            now = dict.fromkeys(most, 0.0)
            for pid in _session(leader):
                mib = _pss_kib(pid) / 1024
                now["all"] += mib
                now[JAVA if _name(pid) == JAVA else PYTHON] += mib
            most.update({name: max(most[name], mib) for name, mib in now.items()})

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


def _session(leader: int) -> list[int]:
    """Return the processes of the session of this leader."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with suppress(ProcessLookupError):
                if os.getsid(int(each.name)) == leader:
                    found.append(int(each.name))
    return found


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has ended
        return ""


def _pss_kib(pid: int) -> int:
    """Return the process's proportional set size in KiB; 0 if it has ended."""
    try:
        found = PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0

"""The job as a process of its own: seconds from the start of Spark to its end, and the memory it all takes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

LOOK_S = 0.25
PSS = re.compile(r"^Pss:\s+(\d+) kB", re.M)
TIMEOUT_S = 1800.0
IDLE = ("chrt", "--idle", "0")  # a command before it
LOWEST = "19"  # nice of a session's group
ENDING_S = 30.0  # it undoes nothing, but Spark takes its time


@dataclass(slots=True)
class Ended:
    """What a run of the job was."""

    seconds: float  # from the start of Spark to the end of the process
    start_s: float  # before that: Python, the JVM
    peak_mib: float  # of all its processes together, what they share counted once
    steps: dict[str, float]
    dead: int  # records that were read
    samples: int

    @property
    def records(self) -> int:
        return self.dead + self.samples


@dataclass(slots=True)
class Job:
    """One run; `begin`, and `end` waits for it."""

    store: str
    output: Path
    run: str
    master: str
    log: Path
    is_idle: bool = False  # it has what CPU time nobody else wants
    settings: tuple[str, ...] = ()  # flags behind it
    process: subprocess.Popen[bytes] = field(init=False)
    _peak: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _looking: threading.Thread = field(init=False)

    def begin(self) -> Job:
        options = ("--store", self.store, "--output", str(self.output), "--run-id", self.run)
        words = (
            *IDLE * self.is_idle,
            sys.executable,
            "-m",
            "services.analytics",
            *options,
            "--master",
            self.master,
        )
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([*words, *self.settings], stderr=log, start_new_session=True)
        if self.is_idle:
            yield_to_all(self.process.pid)
        self._looking = threading.Thread(target=self._look)
        self._looking.start()
        return self

    def end(self) -> Ended:
        """Raises OSError if the job failed, or could not use a record."""
        try:
            code = self.process.wait(TIMEOUT_S)
        finally:
            self.give_up()
        ended = time.time()
        if code:
            raise OSError(f"the job ended with {code}: {self.lines()[-1:]}")
        (started,), (told,) = self._told("started"), self._told("done")
        done = json.loads(told["summary"])
        quarantined = done["dead"]["quarantined"] + done["samples"]["quarantined"]
        if quarantined:
            raise OSError(f"{quarantined} records went to the quarantine")
        return Ended(
            seconds=ended - _time(started),
            start_s=started["seconds"],
            peak_mib=self._peak / 1024,
            steps=done["seconds"],
            dead=done["dead"]["read"],
            samples=done["samples"]["read"],
        )

    def give_up(self) -> None:
        """End it, if it has not ended."""
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(ENDING_S)
        self._over.set()
        self._looking.join()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def step(self) -> str:
        """Behind which step it is: '' until Spark is there, 'started' in the first one, then the last that is done."""
        done = [each["step"] for each in self._told("step")]
        return str(["", *("started" for _ in self._told("started")), *done][-1])

    def is_over(self) -> bool:
        return self.process.poll() is not None

    def _told(self, action: str) -> list[dict[str, Any]]:
        return [each for each in self.lines() if each.get("action") == action]

    def lines(self) -> list[dict[str, Any]]:
        """What it logged; Spark's own words are not among it."""
        text = self.log.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in text if line.startswith("{") and line.endswith("}")]

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            self._peak = max(self._peak, sum(map(_pss_kib, _session(self.process.pid))))


def yield_to_all(leader: int) -> None:
    """Also the session's group of tasks: Linux gives each the same share, whatever class its tasks have in it."""
    with suppress(FileNotFoundError):  # a kernel without groups of sessions
        Path(f"/proc/{leader}/autogroup").write_text(LOWEST)


def _time(line: dict[str, Any]) -> float:
    return datetime.fromisoformat(line["time"]).timestamp()


def _session(leader: int) -> list[int]:
    """Processes of the session that this one leads."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                if os.getsid(int(each.name)) == leader:
                    found.append(int(each.name))
            except ProcessLookupError:
                continue
    return found


def _pss_kib(pid: int) -> int:
    """Its share of memory in KiB; 0 of one that is gone."""
    try:
        found = PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0

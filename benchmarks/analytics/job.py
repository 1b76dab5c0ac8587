"""Run the job in a process of its own: seconds from the start of Spark to the end, and memory in use."""

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
IDLE = ("chrt", "--idle", "0")  # prefix of the command
LOWEST = "19"  # nice value of a session's autogroup
ENDING_S = 30.0  # Spark needs time to stop


@dataclass(slots=True)
class Ended:
    """The figures of a run of the job."""

    seconds: float  # from the start of Spark to the end of the process
    start_s: float  # before that: the start of Python and of the JVM
    peak_mib: float  # of all processes together; shared memory counts once
    steps: dict[str, float]
    dead: int  # records that were read
    samples: int

    @property
    def records(self) -> int:
        return self.dead + self.samples


@dataclass(slots=True)
class Job:
    """One run of the job: `begin` starts it, `end` waits for it."""

    store: str
    output: Path
    run: str
    master: str
    log: Path
    is_idle: bool = False  # run only on CPU time that is left over
    settings: tuple[str, ...] = ()  # flags after the command
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
        """Wait for the end of the job. Raises OSError if it failed or could not use a record."""
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
        """Stop the job if it still runs."""
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(ENDING_S)
        self._over.set()
        self._looking.join()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def step(self) -> str:
        """Return the progress: '' until Spark has started, then 'started', then the last step that is complete."""
        done = [each["step"] for each in self._told("step")]
        return str(["", *("started" for _ in self._told("started")), *done][-1])

    def is_over(self) -> bool:
        return self.process.poll() is not None

    def _told(self, action: str) -> list[dict[str, Any]]:
        return [each for each in self.lines() if each.get("action") == action]

    def lines(self) -> list[dict[str, Any]]:
        """Return the job's log records, without Spark's own output."""
        text = self.log.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in text if line.startswith("{") and line.endswith("}")]

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            self._peak = max(self._peak, sum(map(_pss_kib, _session(self.process.pid))))


def yield_to_all(leader: int) -> None:
    """Lower the priority of the session's autogroup too: Linux gives each group an equal share of the CPU."""
    with suppress(FileNotFoundError):  # a kernel without autogroups
        Path(f"/proc/{leader}/autogroup").write_text(LOWEST)


def _time(line: dict[str, Any]) -> float:
    return datetime.fromisoformat(line["time"]).timestamp()


def _session(leader: int) -> list[int]:
    """Return the processes of the session of this leader."""
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
    """Return the process's proportional set size in KiB; 0 if it has ended."""
    try:
        found = PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0

"""What the workers of one edge tell the process that answers for them: a page of shared memory.

Each worker writes only its own row, the supervisor writes rows of dead workers and what is in front of all rows. A
reader may see a reason half written; that is a blemish in a text, once.
"""

from __future__ import annotations

import enum
import mmap
import struct
import time
from functools import partial

from services.kit.readiness import Readiness

_ROW = struct.Struct("=Bd180s")  # state, time of the last report (s, monotonic), reason in UTF-8
_ROW_SIZE = 192
_DRAINING = struct.Struct("=?")
_DEATHS = struct.Struct("=Q")  # workers that ended, since the supervisor began
_DEATHS_AT = _DRAINING.size
_HEAD = _DEATHS_AT + _DEATHS.size
STUCK_S = 15.0  # a worker reports every second; one silent for so long does not run any more


class WorkerState(enum.IntEnum):
    """What a row says."""

    ABSENT = 0  # not started yet, or dead and waiting to be restarted
    STARTING = 1  # the process runs, the edge does not yet
    UNREADY = 2  # the edge runs and says why it cannot serve now
    READY = 3  # serving


class WorkerTable:
    """Made before the workers are forked; all of them see the same page."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._page = mmap.mmap(-1, _HEAD + workers * _ROW_SIZE)
        rows = {f"worker {number}": partial(self._worker_fault, number) for number in range(workers)}
        self.readiness = Readiness(accepting=self._drain_fault, **rows)

    def report(self, worker: int, state: WorkerState, reason: str = "") -> None:
        """A worker's row; doing so is also its sign of life."""
        _ROW.pack_into(self._page, self._at(worker), state, time.monotonic(), reason.encode()[:180])

    def drain(self) -> None:
        _DRAINING.pack_into(self._page, 0, True)

    def count_death(self) -> None:
        (deaths,) = _DEATHS.unpack_from(self._page, _DEATHS_AT)
        _DEATHS.pack_into(self._page, _DEATHS_AT, deaths + 1)

    def deaths(self) -> int:
        """How often a worker ended that nobody had told to."""
        (deaths,) = _DEATHS.unpack_from(self._page, _DEATHS_AT)
        return int(deaths)

    def _drain_fault(self) -> str | None:
        (is_draining,) = _DRAINING.unpack_from(self._page, 0)
        return "draining" if is_draining else None

    def _worker_fault(self, worker: int) -> str | None:
        state, _, reason = _ROW.unpack_from(self._page, self._at(worker))
        if state == WorkerState.READY:
            return None
        return reason.rstrip(b"\0").decode(errors="replace") or WorkerState(state).name.lower()

    def stuck(self) -> str | None:
        """Which worker runs but does not turn its loop any more, or None."""
        for worker in range(self._workers):
            state, reported, _ = _ROW.unpack_from(self._page, self._at(worker))
            silent_s = time.monotonic() - reported
            if state != WorkerState.ABSENT and silent_s > STUCK_S:
                return f"worker {worker}: silent for {silent_s:.0f} s"
        return None

    def _at(self, worker: int) -> int:
        return _HEAD + worker * _ROW_SIZE

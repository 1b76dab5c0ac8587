"""What workers have counted that ended: added up in one file of each kind, as each scrape reads every file again.

The supervisor does so where nobody reads meanwhile. It waits for no reader, who may hang; it tries again later.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import struct
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import mark_process_dead

from services.kit.metrics.queue_totals import NAMES, bury_figures, forget_figures
from services.kit.metrics.shared_names import SharedNames

log = logging.getLogger(__name__)

DEAD = 0  # stands in names of files where others have the number of a process, which is never this one
COUNTED = ("counter", "histogram")  # kinds of prometheus_client's files that outlive their process
_HEAD = struct.Struct("=ii")  # octets that are used, this head among them; padding
_ALIGNED = 8


class DeadWorkerMetrics:
    """The supervisor's side."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: set[int] = set()
        self._names = SharedNames(folder / NAMES)
        self._are_names_new = False  # since figures of names that are gone were forgotten

    def take(self, pid: int) -> None:
        """A worker is gone: its gauges no longer count, its counters do."""
        mark_process_dead(pid, str(self._folder))  # type: ignore[no-untyped-call]
        self._waiting.add(pid)

    def add_up(self, living: Collection[int]) -> None:
        """What there is by now, unless somebody reads. A living one of the same number counts on where the dead did."""
        self._waiting.difference_update(living)
        try:
            is_whole, _ = self._names.news()  # else no name is gone
            self._are_names_new |= is_whole
            if not self._waiting and not self._are_names_new:
                return
            with _locked(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
                for pid in [*self._waiting]:
                    for kind in COUNTED:
                        self._bury(kind, pid)
                    bury_figures(self._folder, pid, DEAD)
                    self._waiting.discard(pid)
                forget_figures(self._folder, DEAD)
                self._are_names_new = False
        except BlockingIOError:
            pass
        except OSError as error:  # no room: what is there stays, and counts
            fields = {"action": "remains_kept", "workers": len(self._waiting)}
            log.warning("cannot add up what workers counted that ended: %s", error, extra=fields)

    def _bury(self, kind: str, pid: int) -> None:
        file, of_all = (self._folder / f"{kind}_{number}.db" for number in (pid, DEAD))
        if not file.exists():
            return
        values = defaultdict[str, float](float)
        for each in (of_all, file):
            for key, value in _read(each):
                values[key] += value
        new = of_all.with_suffix(".new")
        new.write_bytes(_encode(values))
        new.replace(of_all)
        file.unlink()


@contextlib.contextmanager
def read_lock(folder: Path) -> Iterator[None]:
    """For whoever reads: else some would count twice, or not."""
    with _locked(folder, fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    """Raises BlockingIOError if it is not to wait, and would have to."""
    descriptor = os.open(folder / "remains.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def _read(file: Path) -> Iterator[tuple[str, float]]:
    """None of a file that is not there, or whose process ended as it made it."""
    if file.exists() and file.stat().st_size:
        for key, value, *_ in MmapedDict.read_all_values_from_file(str(file)):  # type: ignore[no-untyped-call]
            yield key, value


def _encode(values: Mapping[str, float]) -> bytes:
    """As prometheus_client has it, whose own way is a map of the file: there a full disk kills the process."""
    entries = b"".join(_entry(key.encode(), value) for key, value in values.items())
    return _HEAD.pack(_HEAD.size + len(entries), 0) + entries


def _entry(key: bytes, value: float) -> bytes:
    padded = key + b" " * (_ALIGNED - (len(key) + 4) % _ALIGNED)
    return struct.pack(f"=i{len(padded)}sdd", len(key), padded, value, 0.0)

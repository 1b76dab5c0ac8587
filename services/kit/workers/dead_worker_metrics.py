"""Merge the counters of workers that have exited into one file per kind, because each scrape reads every file.

The supervisor merges while no scrape reads. It does not wait for a reader, which may hang, but retries later.
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

from services.kit.metrics.queue_totals import NAMES, forget_totals, merge_totals
from services.kit.metrics.shared_names import SharedNames

log = logging.getLogger(__name__)

DEAD = 0  # in file names instead of a pid: of all workers that have exited
COUNTED = ("counter", "histogram")  # kinds of prometheus_client's files that are kept after the process exits
_HEAD = struct.Struct("=ii")  # octets used, with this header; padding
_ALIGNED = 8


class DeadWorkerMetrics:
    """The files of workers that have exited, for the supervisor."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: set[int] = set()
        self._names = SharedNames(folder / NAMES)
        self._are_names_new = False  # labels may have been released since `forget_totals`

    def add(self, pid: int) -> None:
        """Take note that a worker has exited: drop its gauges, keep its counters."""
        mark_process_dead(pid, str(self._folder))  # type: ignore[no-untyped-call]
        self._waiting.add(pid)

    def merge(self, living: Collection[int]) -> None:
        """Merge the files of exited workers, unless a scrape reads. A living process of the same pid keeps its file."""
        self._waiting.difference_update(living)
        try:
            is_whole, _ = self._names.news()  # labels are released only then
            self._are_names_new |= is_whole
            if not self._waiting and not self._are_names_new:
                return
            with _locked(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
                for pid in [*self._waiting]:
                    for kind in COUNTED:
                        self._merge(kind, pid)
                    merge_totals(self._folder, pid, DEAD)
                    self._waiting.discard(pid)
                forget_totals(self._folder, DEAD)
                self._are_names_new = False
        except BlockingIOError:
            pass
        except OSError as error:  # the disk is full: the files stay, and count
            fields = {"action": "remains_kept", "workers": len(self._waiting)}
            log.warning("cannot merge the metrics of exited workers, they are kept: %s", error, extra=fields)

    def _merge(self, kind: str, pid: int) -> None:
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
    """Keep the files unchanged during a scrape; otherwise some counts would be doubled or missing."""
    with _locked(folder, fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    """Hold the lock. Raises BlockingIOError instead of waiting if `how` has LOCK_NB."""
    descriptor = os.open(folder / "remains.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def _read(file: Path) -> Iterator[tuple[str, float]]:
    """Yield keys and values; none of a file that is missing or empty."""
    if file.exists() and file.stat().st_size:
        for key, value, *_ in MmapedDict.read_all_values_from_file(str(file)):  # type: ignore[no-untyped-call]
            yield key, value


def _encode(values: Mapping[str, float]) -> bytes:
    """Encode prometheus_client's file format. Its own memory map would kill the process on a full disk."""
    entries = b"".join(_entry(key.encode(), value) for key, value in values.items())
    return _HEAD.pack(_HEAD.size + len(entries), 0) + entries


def _entry(key: bytes, value: float) -> bytes:
    padded = key + b" " * (_ALIGNED - (len(key) + 4) % _ALIGNED)
    return struct.pack(f"=i{len(padded)}sdd", len(key), padded, value, 0.0)

"""Which queues have a name in metrics: the first so many that are heard of, all others are `_other`.

Prometheus keeps a series for each name, so their number is bounded, whatever clients make. Workers that share a page
share its names, too, in a file that each of them reads when it hears of a queue that it does not know.
"""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

OTHER = "_other"


def label_of(name: str) -> str:
    """A queue may have any octets for a name; Prometheus takes UTF-8 alone. Two that look the same are summed up."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class QueueNames:
    """`file`: what workers share; None for a process of its own."""

    def __init__(self, most: int, file: Path | None = None) -> None:
        self._most = most
        self._file = file
        self._named: set[str] = set()

    def label(self, name: str) -> str:
        """The value of the label `queue`."""
        label = label_of(name)
        if label in self._named:
            return label
        if len(self._named) < self._most:
            self._add(label)
        return label if label in self._named else OTHER

    def _add(self, label: str) -> None:
        if self._file is None:
            self._named.add(label)
            return
        with self._file.open("a+", encoding="utf-8") as shared:
            fcntl.flock(shared, fcntl.LOCK_EX)  # let go of by closing it
            shared.seek(0)
            self._named.update(json.loads(line) for line in shared)
            if label not in self._named and len(self._named) < self._most:
                shared.write(json.dumps(label) + "\n")
                self._named.add(label)

"""The messages that wait for one destination, as far as the sending machine must know them: types and counts."""

from collections import deque

from protos.rqp_mca.wire import MessageType


class Pending:
    """Runs of messages of one type each, in order; neighbours differ in type."""

    __slots__ = ("_runs", "size")

    def __init__(self) -> None:
        self._runs: deque[tuple[MessageType, int]] = deque()
        self.size = 0

    def append(self, kind: MessageType, count: int) -> None:
        """Add `count` messages at the end."""
        self.size += count
        if self._runs and self._runs[-1][0] is kind:
            count += self._runs.pop()[1]
        if count:
            self._runs.append((kind, count))

    @property
    def kind(self) -> MessageType | None:
        """Type of the first message; None if there is none."""
        return self._runs[0][0] if self._runs else None

    @property
    def run(self) -> int:
        """How many messages of that type come first."""
        return self._runs[0][1] if self._runs else 0

    def remove(self, count: int) -> None:
        """Remove the first `count`, at most the first run."""
        kind, run = self._runs.popleft()
        if count < run:
            self._runs.appendleft((kind, run - count))
        self.size -= count

    def keep(self, count: int) -> None:
        """Remove all but the first `count`, at most the first run."""
        kind, self.size = self.kind, count
        self._runs.clear()
        if kind is not None and count:
            self._runs.append((kind, count))

    def take_out(self, start: int, count: int) -> None:
        """Remove `count` messages from index `start` on."""
        runs, self._runs, self.size = self._runs, deque(), 0
        for kind, run in runs:
            kept = min(run, start)
            gone = min(run - kept, count)
            start, count = start - kept, count - gone
            self.append(kind, run - gone)

"""Frames being stored for forwarding, and repeats of them that came meanwhile (ring.md 4.5, 5.4)."""

from __future__ import annotations

from protos.ring import NO_ID, Frame, Operation
from services.ring.node.jobs import Job


class Pending:
    """Repeats share the outcome of the first copy, which is forwarded once.

    They are not carried out here either, even if the queue is here by now: the node behind may have carried out the
    first copy. Payloads without a request id, and those that are no frames, are never repeats.
    """

    def __init__(self) -> None:
        self._again: dict[tuple[bytes, Operation, bool], list[Job]] = {}

    def __len__(self) -> int:
        """Return how many frames are being stored."""
        return len(self._again)

    def begin(self, frame: Frame | None) -> None:
        """Note that a frame is being stored."""
        if frame is not None and frame.request_id != NO_ID:
            self._again[_copy(frame)] = []

    def joins(self, job: Job, frame: Frame | None) -> bool:
        """Return whether the same frame is being stored: then the job ends with that."""
        again = None if frame is None else self._again.get(_copy(frame))
        if again is not None:
            again.append(job)
        return again is not None

    def end(self, frame: Frame | None) -> list[Job]:
        """Return the jobs that end with the frame."""
        return [] if frame is None else self._again.pop(_copy(frame), [])


def _copy(frame: Frame) -> tuple[bytes, Operation, bool]:
    """Return what distinguishes two frames from two copies of one (5.5)."""
    return frame.request_id, frame.operation, frame.settles

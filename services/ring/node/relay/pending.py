"""Frames that are passed on and not in the store yet, and which came again meanwhile (ring.md 4.5, 5.4)."""

from __future__ import annotations

from protos.ring import NO_ID, Frame, Operation
from services.ring.node.jobs import Job


class Pending:
    """One that comes again is as safe as the first, so it goes on once.

    Nor is it carried out here, should its queue be here by now: the first may have been carried out by the node behind.
    Of what has no request id each is one of its own, and so is what is no frame.
    """

    def __init__(self) -> None:
        self._again: dict[tuple[bytes, Operation, bool], list[Job]] = {}

    def __len__(self) -> int:
        return len(self._again)

    def begin(self, frame: Frame | None) -> None:
        """It is being put in."""
        if frame is not None and frame.request_id != NO_ID:
            self._again[_copy(frame)] = []

    def joins(self, job: Job, frame: Frame | None) -> bool:
        """Whether one like it is being put in: then nothing else is to be done with this one."""
        again = None if frame is None else self._again.get(_copy(frame))
        if again is not None:
            again.append(job)
        return again is not None

    def end(self, frame: Frame | None) -> list[Job]:
        """Those that are over with it."""
        return [] if frame is None else self._again.pop(_copy(frame), [])


def _copy(frame: Frame) -> tuple[bytes, Operation, bool]:
    """What tells two copies of one frame from two frames (5.5)."""
    return frame.request_id, frame.operation, frame.settles

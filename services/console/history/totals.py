"""Aggregate the rates of all queues of a domain as samples are read, as there may be very many samples."""

from __future__ import annotations

from collections.abc import Sequence

from services.console.history.series import FLOWS, Flow, shares

STEP_MS = 10_000  # all other steps are multiples


class Totals:
    """Totals of a domain. known_ms: nothing is known of the time before it; 0: no samples yet."""

    def __init__(self, keep_ms: int) -> None:
        self.known_ms = 0
        self._keep = keep_ms // STEP_MS
        self._steps: dict[int, list[float]] = {}  # number of a step since 1970 -> numbers of FLOWS

    def add(self, flow: Flow) -> None:
        """Add a sample."""
        for step, share in shares(flow, 0, STEP_MS):
            numbers = self._steps.get(step)
            if numbers is None:
                numbers = self._begin(step)
            for index, number in enumerate(flow.numbers):
                numbers[index] += number * share

    def _begin(self, step: int) -> list[float]:
        if len(self._steps) > self._keep + 2:
            del self._steps[min(self._steps)]
        numbers = self._steps[step] = [0.0] * len(FLOWS)
        return numbers

    def between(self, start_ms: int, step_ms: int) -> list[float] | None:
        """Return the totals of the step that begins then, or None if they are not completely known."""
        if not self.known_ms or start_ms < self.known_ms:
            return None
        first = start_ms // STEP_MS
        found = [self._steps.get(first + i) for i in range(step_ms // STEP_MS)]
        return [sum(numbers[index] for numbers in found if numbers) for index in range(len(FLOWS))]

    @staticmethod
    def rates(
        totals: Sequence[Totals], start_ms: int, step_ms: int, count: int
    ) -> dict[str, list[float | None]]:
        """Return the messages per second in each step, by name; domains without samples are left out."""
        known_totals = [each for each in totals if each.known_ms]
        steps: list[list[float] | None] = []
        for at in range(count):
            found = [each.between(start_ms + at * step_ms, step_ms) for each in known_totals]
            known = [each for each in found if each is not None]
            steps.append(
                [sum(each) for each in zip(*known, strict=True)]
                if known and len(known) == len(found)
                else None
            )
        seconds = step_ms / 1000
        return {
            name: [None if step is None else round(step[index] / seconds, 3) for step in steps]
            for index, name in enumerate(FLOWS)
        }

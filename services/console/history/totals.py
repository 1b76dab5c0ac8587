"""What was done with all queues of a domain together: summed up as samples come, as there may be very many of them."""

from __future__ import annotations

from collections.abc import Sequence

from services.console.history.series import FLOWS, Flow, shares

STEP_MS = 10_000  # every other step is so many of these


class Totals:
    """known_ms: nothing is known of the time before it; 0: nobody told anything yet."""

    def __init__(self, keep_ms: int) -> None:
        self.known_ms = 0
        self._keep = keep_ms // STEP_MS
        self._steps: dict[int, list[float]] = {}  # number of a step since 1970 -> numbers of FLOWS

    def add(self, flow: Flow) -> None:
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
        """Of the step that begins then, if all of it is known."""
        if not self.known_ms or start_ms < self.known_ms:
            return None
        first = start_ms // STEP_MS
        found = [self._steps.get(first + i) for i in range(step_ms // STEP_MS)]
        return [sum(numbers[index] for numbers in found if numbers) for index in range(len(FLOWS))]

    @staticmethod
    def told(
        totals: Sequence[Totals], start_ms: int, step_ms: int, count: int
    ) -> dict[str, list[float | None]]:
        """Messages a second in each step, by name; domains where nobody has done anything add nothing."""
        telling = [each for each in totals if each.known_ms]
        steps: list[list[float] | None] = []
        for at in range(count):
            found = [each.between(start_ms + at * step_ms, step_ms) for each in telling]
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

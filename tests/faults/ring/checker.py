"""Violations of the guarantees that hold with any kills and cuts (docs/ring.md, "What to count on").

lost       a push answered OK was neither pulled nor left in its queue nor a dead letter
doubled    the rest of a queue and its dead letters hold one push more than once
foreign    a queue held a message that no client pushed into it
refused    a push whose ERROR says that it was not stored was found
unsent     a message put into the outbox without faults never reached the inbox
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.faults.ring.history import HEAD, Answer, History, Push
from tests.faults.run_report import Violation


def check(history: History) -> list[Violation]:
    return list(Check(history).violations())


@dataclass(frozen=True)
class Check:
    history: History

    def violations(self) -> Iterator[Violation]:
        yield from self._lost()
        yield from self._doubled()
        yield from self._foreign()
        yield from self._refused()
        yield from self._unsent()

    @cached_property
    def pulled(self) -> dict[str, Counter[bytes]]:
        found: dict[str, Counter[bytes]] = {}
        for pull in self.history.pulls:
            found.setdefault(pull.queue, Counter())[pull.body] += 1
        return found

    @cached_property
    def stored(self) -> dict[str, Counter[bytes]]:
        """Messages left and dead letters, by queue."""
        history = self.history
        names = {*history.left, *history.dead}
        return {name: history.left.get(name, Counter()) + history.dead.get(name, Counter()) for name in names}

    def is_found(self, push: Push) -> bool:
        places = (self.pulled, self.stored)
        return any(place.get(push.queue, Counter())[push.body] for place in places)

    def _lost(self) -> Iterator[Violation]:
        for push in self.history.pushes:
            if push.answer is Answer.OK and not self.is_found(push):
                yield _say("lost", push, "is missing")

    def _doubled(self) -> Iterator[Violation]:
        for push in self.history.pushes:
            if (times := self.stored.get(push.queue, Counter())[push.body]) > 1:
                yield _say("doubled", push, f"is there {times} times")

    def _foreign(self) -> Iterator[Violation]:
        pushed = {(push.queue, push.body) for push in self.history.pushes}
        for place in (self.pulled, self.stored):
            for queue, bodies in place.items():
                for body in bodies:
                    if (queue, body) not in pushed:
                        yield Violation("foreign", f"{body[:HEAD]!r} in {queue}: it was never pushed there")

    def _refused(self) -> Iterator[Violation]:
        for push in self.history.pushes:
            if push.answer is Answer.NO and self.is_found(push):
                yield _say("refused", push, "is there")

    def _unsent(self) -> Iterator[Violation]:
        for body in self.history.sent:
            if not self.history.inbox[body]:
                yield Violation("unsent", f"{body!r} is not in the inbox")


def _say(rule: str, push: Push, what: str) -> Violation:
    round_ = "around the ring" if push.goes_round else "into its own store"
    return Violation(rule, f"{push} of {push.node} {round_}, in {push.queue}: {what}")


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of pushes by outcome, for the summary."""

    ok: int
    no: int
    open: int

    def __str__(self) -> str:
        return f"{self.ok} ok, {self.no} refused, {self.open} open"


def count(pushes: list[Push]) -> Counts:
    answers = Counter(push.answer for push in pushes)
    return Counts(answers[Answer.OK], answers[Answer.NO], answers[Answer.OPEN])


def again(history: History) -> int:
    """Return the number of redeliveries: pulls beyond the first of each message."""
    return len(history.pulls) - len({(pull.queue, pull.body) for pull in history.pulls})

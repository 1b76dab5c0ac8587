"""The smallest session on `Inflow`: lines are requests, whose answers come when a test gives them.

now      answered at once
later    waits for the test; others may overlap with it
hold     waits for the test, and everything after it waits too
alone    answered at once, but not before all that came before it
run 90   as `now`, and as much work as 90 requests
full     as `later`, and too much waits from now on
bad      a violation
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from protos.types import PeerError
from services.kit.session.answers import Slot
from services.kit.session.conversation import Conversation
from services.kit.session.inflow import Inflow
from services.kit.session.session import Wire

LINE_TIMEOUT_S = 30.0


class LineParser:
    """Lines that end in LF."""

    def __init__(self) -> None:
        self._held = b""
        self._since: float | None = None

    def receive(self, data: bytes, now: float) -> Iterator[str]:
        *lines, self._held = (self._held + data).split(b"\n")
        self._since = now if self._held else None
        for line in lines:
            if line == b"bad":
                raise PeerError("bad_line")
            yield line.decode()

    def receive_eof(self, now: float) -> Iterator[str]:
        if self._held:
            raise PeerError("truncated")
        yield "end"

    def deadline(self) -> float | None:
        return None if self._since is None else self._since + LINE_TIMEOUT_S

    def on_time(self, now: float) -> Iterator[str]:
        yield "late"

    def restart_clock(self, now: float) -> None:
        self._since = now if self._held else None

    @property
    def buffered(self) -> int:
        return len(self._held)


class LineSession:
    """A session of lines. `handled` are the requests begun so far; `owed` those that a test has to answer."""

    def __init__(self, wire: Wire) -> None:
        self.conversation = Conversation(wire)
        self.inflow = Inflow(self.conversation, LineParser(), self)
        self.handled: list[str] = []
        self.owed: list[tuple[str, Slot]] = []
        self.ends = 0  # how often the input was handled as far as possible
        self.resumes: list[Callable[[], None]] = []  # the waiters for room

    # --- calls of the kit

    def received(self, data: bytes, now: float) -> None:
        self.inflow.received(data, now)

    def eof(self, now: float) -> None:
        self.inflow.eof()

    def resumed(self, now: float) -> None:
        self.inflow.restart_clock(now)
        self.inflow.proceed()

    def deadline(self) -> float | None:
        return self.inflow.deadline()

    def on_time(self, now: float) -> None:
        self.inflow.on_time(now)

    def drain(self) -> None:
        self.conversation.drained = True

    def lost(self, reset: bool) -> None:
        self.conversation.is_lost = True
        self.inflow.lost()

    @property
    def buffered(self) -> int:
        return self.inflow.buffered

    # --- calls of the input

    def handle(self, event: str) -> None:
        self.handled.append(event)
        slot = self.conversation.expect()
        if event not in ("later", "hold", "full"):
            self.conversation.fill(slot, f"{event}\n".encode())
            return
        self.owed.append((event, slot))
        if event == "hold":
            self.inflow.hold()
        elif event == "full":
            self.inflow.hold_until_clear(self.resumes.append)

    def work(self, event: str) -> int:
        return int(event.removeprefix("run ")) if event.startswith("run ") else 1

    def is_exclusive(self, event: str) -> bool:
        return event == "alone"

    def end_if_done(self) -> None:
        self.ends += 1

    # --- calls of the test

    def answer(self, index: int, text: str) -> None:
        """Answer one of the requests owed."""
        event, slot = self.owed.pop(index)
        self.conversation.fill(slot, f"{text}\n".encode())
        if event == "hold":
            self.inflow.free()
        else:
            self.inflow.run_answered()

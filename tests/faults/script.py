"""Scripted histories for tests of the checkers."""

from __future__ import annotations

from protos.tmq import Operation
from tests.faults.checker import Violation, check
from tests.faults.history import Connection, Ended, Fault, History, Request, Trouble
from tests.faults.reading import read

Q, R = "orders", "bills"


class Script:
    """A scripted history. Requests run one after the other over all connections and take one second each."""

    def __init__(self) -> None:
        self.history = History()
        self.dead: dict[str, list[bytes]] = {}
        self.faults: list[Fault] = []
        self.troubles: list[Trouble] = []
        self._now = 1.0

    def connection(self, edge: int = 0) -> Connection:
        return self.history.connection("test", edge)

    def ask(
        self, to: Connection, operation: Operation, ok: bool | None = True, queue: str = Q, body: bytes = b""
    ) -> Request:
        """Add a request; `ok=None` leaves it unanswered."""
        request = Request(operation, queue, body, self._now, None if ok is None else self._now + 1, bool(ok))
        self._now += 2
        to.requests.append(request)
        return request

    def put(self, to: Connection, body: bytes, ok: bool | None = True, queue: str = Q) -> Request:
        return self.ask(to, Operation.ENQ, ok, queue, body)

    def take(self, to: Connection, body: bytes, queue: str = Q) -> Request:
        return self.ask(to, Operation.DNQ, True, queue, body)

    def end(self, connection: Connection, how: Ended) -> None:
        connection.ended, connection.ended_at = how, self._now
        self._now += 1

    def drain(self, *bodies: bytes, queue: str = Q) -> Connection:
        """Add a connection that takes these messages and settles them."""
        to = self.connection()
        self.ask(to, Operation.TS)
        for body in bodies:
            self.take(to, body, queue)
        self.ask(to, Operation.TE)
        return to

    def violations(self) -> list[Violation]:
        return check(read(self.history, self.dead, self.faults, self.troubles))

    def broken(self) -> list[str]:
        return [violation.rule for violation in self.violations()]


def stored(script: Script, *bodies: bytes) -> Connection:
    to = script.connection()
    for body in bodies:
        script.put(to, body)
    return to

"""Drive a session manually: calls are packed as by the pipe, but sent and repeated by the test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from services.store.model.client import INTERNAL_CLIENT
from services.store.model.keys import DomainKeys
from services.store.model.operations import Source
from services.store.model.queues import Queue
from services.store.pipeline.call import Call
from services.store.pipeline.gate import Gate
from services.store.pipeline.idempotent import Idempotent
from services.store.pipeline.log_verbs import LogVerbs
from services.store.pipeline.messages import Messages
from tests.servers import Client
from tests.store.checked_library import checked_source

DATASET = "dataset.1"


def begin(client: Client, *queues: Queue, library: Callable[[], str] = checked_source) -> None:
    """Make a dataset on an empty server, with these queues.

    library: the functions' code. Checked numbers refuse a body that reads like one: tests of any body take `source`.
    """
    client.call("FUNCTION", "LOAD", "REPLACE", library())
    for queue in queues:
        keys = DomainKeys(queue.domain)
        client.call("SET", keys.epoch, DATASET)
        fields = (queue.qid, "maker", queue.spec.subscription(queue.name), *queue.spec.fields())
        named = (keys.epoch, queue.keys[1], *keys.bindings)
        client.call("FCALL", "ps1_declare", len(named), *named, DATASET, *fields)


class Lane:
    """A lane that collects operations as a Pipe does; `send` makes the call and distributes the replies."""

    def __init__(self, client: Client, session: str, epoch: str = DATASET, domain: str = "main") -> None:
        self.keys = DomainKeys(domain)
        self.refusals: Counter[str] = Counter()
        gate = Gate(self.keys, self._refused, patience_s=1e9)
        self.tallies, self.waiting = gate.tallies, gate.waiting
        self.messages, self.idempotent, self.log = (
            Messages(gate, None),
            Idempotent(gate, None),
            LogVerbs(gate, None),
        )
        self.client = client
        self.epoch = epoch
        self.session = session
        self.sequence = 0
        self.source = Source(INTERNAL_CLIENT)
        self.command: tuple[Any, ...] = ()
        self.control("open")

    def _refused(self, reason: str, number: int) -> None:
        self.refusals[reason] += number

    def function(self, name: str, keys: tuple[str, ...] | list[str], *args: Any) -> Any:
        """Call a store function with the domain's epoch."""
        return self.client.call(
            "FCALL", f"ps1_{name}", 1 + len(keys), self.keys.epoch, *keys, self.epoch, *args
        )

    def control(self, mode: str) -> Any:
        """Open, beat or close the session."""
        return self.function(
            "session", [self.keys.sessions, self.keys.lane(self.session)], self.session, mode
        )

    def send(self, deadline_ms: int = 0) -> Any:
        """Make the call and return its raw reply. Raises ResponseError if the store refuses the call."""
        call = self.waiting.next() or Call(self.keys, self.tallies)
        assert not self.waiting, "more than one call"
        self.sequence += 1
        call.encode(self.epoch, self.session, self.sequence, deadline_ms)
        self.command = call.command
        replies = self.again()
        call.finish(replies)
        return replies

    def again(self) -> Any:
        """Repeat the last call, as after a lost reply; return the reply without the time."""
        return self.client.call(*self.command)[:-1]

    def die(self) -> None:
        """Set the last heartbeat to a time long ago."""
        self.client.call("ZADD", self.keys.sessions, 1, self.session)

    def fence(self, timeout_ms: int = 30_000) -> list[str]:
        """Fence silent sessions; return the sessions to sweep."""
        keys = [self.keys.sessions, self.keys.dying, self.keys.state]
        run_id = self.client.call("INFO", "server").decode().partition("run_id:")[2][:40]
        self.client.call("HSET", self.keys.state, "up_since", 1, "run_id", run_id, "looked", 1)
        _, *dying = self.function("fence", keys, timeout_ms, 1 << 50)
        return [name.decode() for name in dying[::2]]

    def sweep(self, session: str, queues: list[Queue]) -> tuple[int, int, int]:
        """Sweep a fenced session: (returned, dead, stale)."""
        own = [self.keys.dying, self.keys.lots(session), self.keys.lane(session)]
        by_id = {queue.qid: queue for queue in queues}
        total = [0, 0, 0]
        for member in self.client.call("SMEMBERS", self.keys.lots(session)):
            qid, lot = member.decode().split(" ")
            counts = self.function("sweep", [*own, *by_id[qid].keys], session, lot, self.keys.wake_channel)
            total = [a + b for a, b in zip(total, counts, strict=True)]
        self.function("bury_session", own, session)
        return total[0], total[1], total[2]

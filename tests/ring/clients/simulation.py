"""A client session driven by random events: queues are created and deleted, known to the edge or not."""

from __future__ import annotations

import random
from typing import Any

from services.ring.clients.session import ClientSession
from services.ring.settings import RingSettings
from services.store import Queue, QueueSpec, StoreError
from services.store.model import errors
from tests.chance import ChancePipe, ChanceWorld
from tests.ring.clients.client import create, destroy, pull, push

NAMES = (b"a", b"b", b"c", b"ring/x")


class FickleQueues(ChancePipe):
    """A service with queues that are sometimes deleted."""

    def _later(self, done: Any, good: Any, *more: Any) -> None:
        if self.rng.random() < 0.2:
            self.asked.append(lambda: done(errors.QueueUnknown(), *more))
        else:
            super()._later(done, good, *more)


class Simulation(ChanceWorld):
    """The wire, the service and the store of one session; look-ups are answered like background tasks."""

    remote_queues = None

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.main = FickleQueues(rng)
        clients = {"max_unsettled": rng.choice([3, 1024]), "create": {"allowed": rng.random() < 0.5}}
        self.settings = RingSettings.model_validate({"clients": clients})
        self.asked: list[bytes] = []  # the expected answer of each request, in order
        self.known: dict[str, Queue] = {}
        self.session = ClientSession(self, self.settings.client_limits(), self)  # type: ignore[arg-type]

    # the store

    def held(self, name: str) -> Queue | None:
        return self.known.get(name)

    def forget(self, name: str) -> None:
        self.known.pop(name, None)

    def find(self, name: str) -> Queue | StoreError:
        """Return the queue, or the reason why it cannot be used."""
        if self.rng.random() < 0.3:
            return self.rng.choice([errors.QueueUnknown(), errors.StoreUnavailable()])
        return self.known.setdefault(name, Queue(name, f"q{name}", "main", "x", QueueSpec(ack_level="fsync")))

    def run(self, work: Any, done: Any) -> None:
        if not isinstance(work, Queue | StoreError):  # look-ups that create or destroy a queue
            work.close()
            work = self.rng.choice([True, False, errors.QueueExists()])
        super().run(work, done)

    def requests(self) -> bytes:
        name, sender = self.rng.choice(NAMES), self.rng.choice([b"me", b"you"])
        kinds = (
            *(push(name, b"x", sender=sender),) * 4,
            *(pull(name, sender=sender),) * 3,
            push(b"b", b"x"),
            create(name),
            destroy(name),
        )
        sent = self.rng.choices(kinds, k=self.rng.choice((1, 1, 2, 5, 70, 300)))
        self.asked += [request[4:514] for request in sent]
        return b"".join(sent)

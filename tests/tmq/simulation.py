"""Simulate a TMQ session with random events."""

from __future__ import annotations

import random
from typing import Any

from protos import tmq
from protos.tmq import Dialect
from services.store import Client, Queue, QueueSpec
from services.tmq.session import TmqSession
from services.tmq.settings import TmqListener, TmqSettings, TransactionKind
from tests.chance import ChanceWorld

NAMES = (b"a", b"b", b"c")


class Simulation(ChanceWorld):
    """The wire and the service of one session."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.settings = TmqSettings(max_unsettled=rng.choice([3, 1024]))
        self.dialect = rng.choice(list(Dialect))
        limits = self.settings.limits(TmqListener(port=0))
        kind = (
            TransactionKind.ATOMIC if self.dialect is Dialect.DOCUMENT else rng.choice(list(TransactionKind))
        )
        self.session = TmqSession(self, self, self.dialect, kind, limits)  # type: ignore[arg-type]
        self.session.received(b"".join(map(tmq.encode_open, NAMES)), self.now)

    # The service

    def open(self, name: str, client: Client) -> Any:
        return Queue(name, "q" + name, "main", "x", QueueSpec(ack_level="fsync"))

    def create(self, name: str) -> Any:
        return self.rng.random() < 0.5

    delete = create

    def requests(self) -> bytes:
        mqid = tmq.mqid_of(self.rng.choice(NAMES))
        kinds = (
            *(tmq.encode_enq(mqid, b"x"),) * 4,
            *(tmq.encode_dnq(mqid),) * 3,
            tmq.encode_open(b"a"),
            tmq.encode_create(b"b"),
            *(tmq.encode_ts(self.dialect), tmq.encode_te(self.dialect), tmq.encode_ta(self.dialect)),
        )
        return b"".join(self.rng.choices(kinds, k=self.rng.choice((1, 1, 2, 5, 70, 600))))

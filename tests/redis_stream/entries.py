"""Entries as edges and the store write them, put into a server one by one and remembered."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

from services.store.model.keys import DomainKeys, RegistryKeys
from services.store.redis.library import source
from tests.servers import Server

HOUR_MS = 3_600_000
COUNTERS = (
    *("added", "delivered", "acked", "returned", "fenced", "dead_all", "expired", "duplicates", "redriven"),
    *("purged", "dead_trimmed", "bytes_in", "bytes_out"),
)
REASONS = ("expired", "attempts", "rejected")
ERRORS = (
    "timeout after {} ms",
    "cannot  parse\tline {}",
    "no customer 550e8400-e29b-41d4-a716-4466554{:05d}",
    "",
)


@dataclass
class Entries:
    """A store with a catalogue, and the entries written to it."""

    server: Server
    qids: dict[str, str] = field(default_factory=dict)
    letters: list[dict[str, Any]] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server.call("FUNCTION", "LOAD", "REPLACE", source())
        self.server.call("SET", RegistryKeys().epoch, "abc.1")
        self.domain("main")

    def domain(self, name: str) -> None:
        self.server.call("HSET", RegistryKeys().domains, name, "ready")

    def now_ms(self) -> int:
        seconds, micros = self.server.call("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def queue(self, name: str, domain: str = "main") -> str:
        """Create a queue and return the key of its dead letters."""
        if name not in self.qids:
            self.qids[name] = str(len(self.qids) + 1)
            document = json.dumps({"qid": self.qids[name], "domain": domain})
            self.server.call("HSET", RegistryKeys().queues, name, document)
        return DomainKeys(domain).queue(self.qids[name])[6]

    def letter(self, queue: str, died: int, **told: Any) -> str:
        """Add a dead letter and return its id."""
        fields = {
            **{"reason": "expired", "queue": queue, "entry": "1-1", "enqueued": died - 5000, "died": died},
            **{
                "origin": "tmq 10.0.0.1",
                "acquired": 1,
                "failed": 0,
                "first": 0,
                "last": 0,
                "error": "",
                "body": b"x",
            },
            **told,
        }
        identifier = self.add(self.queue(queue), fields, "*")
        self.letters.append({**fields, "queue": queue, "id": identifier})
        return identifier

    def sample(self, kind: str, at: int, **told: Any) -> str:
        """Add a sample. at: ms and number of the id, or ms; it must rise."""
        fields = {"v": 1, "kind": kind, **told}
        identifier = self.add(DomainKeys("main").samples, fields, f"{at}-*")
        self.samples.append({**fields, "id": identifier})
        return identifier

    def add(self, key: str, fields: dict[str, Any], identifier: str) -> str:
        words = [word for pair in fields.items() for word in pair]
        return str(self.server.call("XADD", key, identifier, *words).decode())


def histogram(chance: random.Random) -> str:
    return ",".join(str(chance.choice((0, 0, 0, 1, 7))) for _ in range(16))


def fill_letters(
    store: Entries,
    chance: random.Random,
    number: int,
    hours: int,
    queues: tuple[str, ...] = ("a", "b", "c", "d e"),
) -> None:
    """Add deaths over the last hours."""
    begin = store.now_ms() - hours * HOUR_MS
    for at in sorted(chance.randrange(hours * HOUR_MS) for _ in range(number)):
        died = begin + at
        text = chance.choice(ERRORS).format(chance.randrange(90000))
        store.letter(
            chance.choice(queues),
            died,
            reason=chance.choice(REASONS),
            enqueued=died - chance.randrange(100_000),
            origin=f"{chance.choice(('tmq', 'ring'))} 10.0.0.{chance.randrange(5)}",
            acquired=chance.randrange(5),
            error=text,
            body=f'{{"order": {chance.randrange(10**6)}, "kind": "{chance.choice("xyz")}"}}',
            **({"redriven": 1} if chance.random() < 0.2 else {}),
        )


def fill_samples(store: Entries, chance: random.Random, looks: int, hours: int) -> None:
    """Add samples of two processes of each of two edges with three queues, and of the states of the queues."""
    begin, step = store.now_ms() - hours * HOUR_MS, hours * HOUR_MS // looks
    in_doubt: list[dict[str, Any]] = []
    processes = [(edge, f"{edge}-{number}") for edge in ("tmq", "ring") for number in range(2)]
    totals = {queue: dict.fromkeys(COUNTERS, 1000) for queue in ("a", "b", "c")}
    for look in range(looks):
        at = begin + look * step + chance.randrange(min(5000, step))
        for told in in_doubt:
            store.sample("queue", at, **told)
        in_doubt.clear()
        for edge, process in processes:
            in_doubt += _looked(store, chance, at, edge, process, look + 1)
        for number, (queue, total) in enumerate(totals.items()):
            for name in COUNTERS:
                total[name] += chance.randrange(5)
            if chance.random() < 0.02:
                total["added"] -= 50  # the store lost data
            figures = {
                "len": chance.randrange(99),
                "leased": 2,
                "oldest_ms": chance.randrange(9999),
                "dead": look,
            }
            ages = {"b": 1000, "c": 3 * HOUR_MS}  # none for `a`
            first = {"age_ms": ages[queue]} if look == 0 and queue in ages else {}
            store.sample("depth", at, queue=queue, qid=number, **figures, **total, **first)


def _looked(
    store: Entries, chance: random.Random, at: int, edge: str, process: str, n: int
) -> list[dict[str, Any]]:
    """Repeat samples whose answers were lost, with the next ones."""
    known = {"edge": edge, "process": process, "n": n, "ms": chance.randrange(9000, 11000)}
    in_doubt = []
    for queue in ("a", "b", "c"):
        counts = {name: chance.randrange(50) for name in ("in", "out", "acked", "returned", "rejected")}
        octets = {"in_octets": counts["in"] * 100, "out_octets": counts["out"] * 100}
        # older edges do not report how many of them were puts
        refused = chance.choice(("", "", "full=3,lease_lost=9", "full=1,paused=2"))
        puts = {"refused_puts": 3 if refused else 0} if edge == "tmq" else {}
        times = {"put": histogram(chance), "wait": histogram(chance)}
        told = {**known, "queue": queue, **counts, **octets, "refused": refused, **puts, **times}
        store.sample("queue", at, **told)
        if chance.random() < 0.2:
            in_doubt.append(told)
    flow = {"connections": chance.randrange(9), "opened": 1, "received_octets": 7, "sent_octets": 8}
    store.sample("edge", at, **known, **flow, refused=chance.choice(("", "busy=2")))
    return in_doubt

"""The key schema on the client's side; lua/schema.lua says what each key holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

REGISTRY_DOMAIN = "registry"
QUEUE_KEYS = ("s", "q", "l", "r", "f", "m", "d", "x")  # the order that every function expects


def encode_domain(name: str) -> str:
    """A domain name as it stands in keys: no byte of it can end the hash tag or the field."""
    return quote(name, safe="-_.")


@dataclass(frozen=True)
class DomainKeys:
    """The keys of one transaction domain; all share one hash tag, so one shard holds them."""

    domain: str

    @cached_property
    def prefix(self) -> str:
        return "ps:{" + encode_domain(self.domain) + "}:"

    @cached_property
    def epoch(self) -> str:
        return self.prefix + "epoch"

    @cached_property
    def sessions(self) -> str:
        return self.prefix + "ses"

    @cached_property
    def dying(self) -> str:
        return self.prefix + "dying"

    @cached_property
    def state(self) -> str:
        return self.prefix + "state"

    @cached_property
    def samples(self) -> str:
        """What edges have done, and how queues stood: see docs/store.md."""
        return self.prefix + "samples"

    @cached_property
    def dead_traced(self) -> str:
        """Who reads new dead letters to trace them; expires."""
        return self.prefix + "dead:traced"

    @cached_property
    def wake_channel(self) -> str:
        return self.prefix + "wake"

    def lane(self, session: str) -> str:
        return f"{self.prefix}lane:{session}"

    def lots(self, session: str) -> str:
        return f"{self.prefix}lots:{session}"

    def transaction(self, identifier: str) -> str:
        return f"{self.prefix}tx:{identifier}"

    def journal(self, name: str) -> str:
        return f"{self.prefix}j:{name}"

    def request(self, identifier: bytes) -> str:
        return f"{self.prefix}r:{identifier.hex()}"

    def fate(self, token: str) -> str:
        return f"{self.prefix}fate:{token}"

    def emptied(self, run: str) -> str:
        return f"{self.prefix}emptied:{run}"

    def queue(self, qid: str) -> tuple[str, ...]:
        return tuple(f"{self.prefix}{qid}:{key}" for key in QUEUE_KEYS)

    @cached_property
    def log(self) -> tuple[str, str, str, str]:
        """The log of the text service: stream, hash, numbers held, numbers gone."""
        return (
            f"{self.prefix}log:s",
            f"{self.prefix}log:h",
            f"{self.prefix}log:held",
            f"{self.prefix}log:gone",
        )

    @cached_property
    def bindings(self) -> tuple[str, str]:
        """The log's hash, which has their version, and the queues that subscribe to the log."""
        return (f"{self.prefix}log:h", f"{self.prefix}log:b")

    @cached_property
    def log_base(self) -> str:
        return self.prefix + "log:base"

    @cached_property
    def log_seen(self) -> str:
        return self.prefix + "log:seen"

    def log_lease(self, neighbour: str) -> str:
        return f"{self.prefix}log:link:{neighbour}"


@dataclass(frozen=True)
class RegistryKeys:
    """The catalogue of all queues and domains; it has a shard of its own."""

    prefix: str = "ps:{" + REGISTRY_DOMAIN + "}:"

    @property
    def epoch(self) -> str:
        return self.prefix + "epoch"

    @property
    def queues(self) -> str:
        return self.prefix + "queues"

    @property
    def numbers(self) -> str:
        return self.prefix + "numbers"

    @property
    def remotes(self) -> str:
        return self.prefix + "remotes"

    @property
    def domains(self) -> str:
        return self.prefix + "domains"

    @property
    def ids(self) -> str:
        return self.prefix + "ids"

    @property
    def cast_ids(self) -> str:
        return self.prefix + "cast_ids"

    @property
    def peers(self) -> str:
        return self.prefix + "peers"

    @property
    def ring_nodes(self) -> str:
        return self.prefix + "ring_nodes"

    @property
    def processes(self) -> str:
        """The directory of running processes."""
        return self.prefix + "processes"

    @property
    def jobs(self) -> str:
        """The board of consoles' jobs."""
        return self.prefix + "jobs"

    @property
    def questions(self) -> str:
        """The channel on which running processes are asked."""
        return self.prefix + "ask"

    def answers(self, question: str) -> str:
        """The channel on which they answer."""
        return f"{self.prefix}answers:{question}"

    def request(self, identifier: bytes) -> str:
        return f"{self.prefix}r:{identifier.hex()}"

    @property
    def promises(self) -> str:
        return self.prefix + "promises"

    @property
    def report(self) -> str:
        """What the analytics job found last."""
        return self.prefix + "report"

    @property
    def audit(self) -> str:
        """What was changed by way of the console, and by whom."""
        return self.prefix + "audit"

    @property
    def audit_minor(self) -> str:
        """What happens often, and what was refused: it pushes nothing out of the other one."""
        return self.prefix + "audit_minor"

    @property
    def changes(self) -> str:
        """The channel on which a change of a queue's document is told."""
        return self.prefix + "changes"

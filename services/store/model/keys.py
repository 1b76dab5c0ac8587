"""Build the names of keys in the store; lua/schema.lua documents their contents."""

from __future__ import annotations

from urllib.parse import quote

REGISTRY_DOMAIN = "registry"
QUEUE_KEYS = ("s", "q", "l", "r", "f", "m", "d", "x")  # the order that every function expects


def encode_domain(name: str) -> str:
    """Escape a domain name for keys, so that no octet of it can end the hash tag or the field."""
    return quote(name, safe="-_.")


class DomainKeys:
    """The keys of one transaction domain, in one shard because they share a hash tag."""

    def __init__(self, domain: str) -> None:
        self.domain = domain
        self.prefix = prefix = "ps:{" + encode_domain(domain) + "}:"
        self.epoch = prefix + "epoch"
        self.sessions = prefix + "ses"
        self.dying = prefix + "dying"
        self.state = prefix + "state"
        self.samples = prefix + "samples"  # activity of edges, states of queues (docs/store.md)
        self.dead_traced = prefix + "dead:traced"  # lease on tracing new dead letters
        self.wake_channel = prefix + "wake"
        self.log_base = prefix + "log:base"
        self.log_seen = prefix + "log:seen"
        # the log of the text service: stream, hash, numbers held, numbers gone
        self.log = (f"{prefix}log:s", f"{prefix}log:h", f"{prefix}log:held", f"{prefix}log:gone")
        # the log's hash, with the version of the bindings, and the queues that subscribe
        self.bindings = (f"{prefix}log:h", f"{prefix}log:b")

    def lane(self, session: str) -> str:
        """Return the key with a session's latest replies, for calls that are repeated."""
        return f"{self.prefix}lane:{session}"

    def lots(self, session: str) -> str:
        """Return the key of a session's lease batches."""
        return f"{self.prefix}lots:{session}"

    def transaction(self, identifier: str) -> str:
        """Return the key that remembers a commit."""
        return f"{self.prefix}tx:{identifier}"

    def journal(self, name: str) -> str:
        """Return the key with the highest stored number of a journal."""
        return f"{self.prefix}j:{name}"

    def request(self, identifier: bytes) -> str:
        """Return the key that remembers a ring request."""
        return f"{self.prefix}r:{identifier.hex()}"

    def fate(self, token: str) -> str:
        """Return the key that records what became of a tracked message."""
        return f"{self.prefix}fate:{token}"

    def emptied(self, run: str) -> str:
        """Return the key with the progress of a purge."""
        return f"{self.prefix}emptied:{run}"

    def queue(self, qid: str) -> tuple[str, ...]:
        """Return the keys of a queue, in the order of QUEUE_KEYS."""
        return tuple(f"{self.prefix}{qid}:{key}" for key in QUEUE_KEYS)

    def log_lease(self, neighbour: str) -> str:
        """Return the key of the lease on following a neighbour's log."""
        return f"{self.prefix}log:link:{neighbour}"


class RegistryKeys:
    """The keys of the catalogue of queues and domains, which has a shard of its own."""

    prefix = "ps:{" + REGISTRY_DOMAIN + "}:"
    epoch = prefix + "epoch"
    queues = prefix + "queues"
    numbers = prefix + "numbers"
    remotes = prefix + "remotes"
    domains = prefix + "domains"
    ids = prefix + "ids"
    cast_ids = prefix + "cast_ids"
    peers = prefix + "peers"
    ring_nodes = prefix + "ring_nodes"
    processes = prefix + "processes"  # the directory of running processes
    jobs = prefix + "jobs"  # the consoles' jobs
    questions = prefix + "ask"  # channel of questions to running processes
    promises = prefix + "promises"
    report = prefix + "report"  # the latest report of the analytics job
    audit = prefix + "audit"  # changes made through the console
    audit_minor = prefix + "audit_minor"  # frequent and refused actions, which must not displace the changes
    changes = prefix + "changes"  # channel of changed documents

    def answers(self, question: str) -> str:
        """Return the channel on which processes answer a question."""
        return f"{self.prefix}answers:{question}"

    def request(self, identifier: bytes) -> str:
        """Return the key that remembers a ring request to create or delete a queue."""
        return f"{self.prefix}r:{identifier.hex()}"

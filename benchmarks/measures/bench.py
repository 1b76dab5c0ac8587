"""What every measure is given: the servers' place, the generator, the plan, and where to put what is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.generator import Generator
from benchmarks.peers.peer import Peer
from benchmarks.peers.redis import Store
from benchmarks.plan import Plan
from benchmarks.process import Workshop
from benchmarks.results import Results


@dataclass(slots=True)
class Bench:
    workshop: Workshop
    generator: Generator
    plan: Plan
    store: Store
    peers: dict[str, Peer]  # those that were asked for
    results: Results
    store_beside: Path | None = None  # another store side, measured beside ours
    say: Callable[[str], None] = print  # what is going on, for the person who waits
    started: dict[str, str] = field(default_factory=dict)  # peer -> "" if it runs, else the reason why not

    def start(self, name: str) -> str:
        """Start a peer once; "" or the reason why it does not run."""
        if name not in self.started:
            self.say(f"starting {name}")
            self.started[name] = _start(self.peers[name])
        return self.started[name]


def _start(peer: Peer) -> str:
    try:
        peer.start()
    except OSError as failure:  # NotRun is one
        return str(failure)
    return ""

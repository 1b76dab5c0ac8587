"""The context of each measure: the servers' workshop, the generator, the plan and the results."""

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
    peers: dict[str, Peer]  # the selected peers
    results: Results
    store_beside: Path | None = None  # another store side, measured beside ours
    say: Callable[[str], None] = print  # progress for the user
    started: dict[str, str] = field(default_factory=dict)  # peer -> "" if it runs, else the reason why not

    def start(self, name: str) -> str:
        """Start a peer once; return "" or the reason why it does not run."""
        if name not in self.started:
            self.say(f"starting {name}")
            self.started[name] = _start(self.peers[name])
        return self.started[name]


def _start(peer: Peer) -> str:
    try:
        peer.start()
    except OSError as failure:  # includes NotRun
        return str(failure)
    return ""

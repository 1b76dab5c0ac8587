"""The measured servers: how each is started, greeted and loaded, and what its acknowledgement guarantees."""

from __future__ import annotations

from benchmarks.peers.beanstalkd import Beanstalkd
from benchmarks.peers.ceiling import Ceiling
from benchmarks.peers.nats import JetStream
from benchmarks.peers.peer import Peer
from benchmarks.peers.rabbitmq import QuorumQueue
from benchmarks.peers.redis import RawXadd, RedisBenchmark, Store
from benchmarks.peers.ring import Ring
from benchmarks.peers.text import Text
from benchmarks.peers.tmq import Tmq
from benchmarks.process import Workshop


def make_peers(workshop: Workshop, store: Store) -> dict[str, Peer]:
    """Return all peers by name, in the order of the table, not started yet."""
    peers: list[Peer] = [
        Tmq(workshop, store),
        Text(workshop, store),
        Ring(workshop, store),
        RedisBenchmark(workshop, store),
        RawXadd(workshop, store),
        JetStream(workshop),
        JetStream(workshop, retention="limits"),
        JetStream(workshop, always=True),
        Beanstalkd(workshop, always=False),
        Beanstalkd(workshop, always=True),
        QuorumQueue(workshop),
        Ceiling(workshop),
    ]
    return {peer.name: peer for peer in peers}

"""Topologies of several real servers: a Cluster of three shards, and a primary with replicas under Sentinels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redis.crc import key_slot

from tests.servers import SentinelServer, Server, eventually, free_port

SLOTS = 16384
SERVICE = "penstock"


class Cluster:
    """Three primaries with a third of the slots each; each has a replica if `replicated`."""

    def __init__(self, program: str, directory: Path, *, replicated: bool = False) -> None:
        self.nodes = [Server(program, directory / f"node{i}", self._options()) for i in range(3)]
        self.replicas = [
            Server(program, directory / f"replica{i}", self._options()) for i in range(3 * replicated)
        ]

    @staticmethod
    def _options() -> dict[str, str]:
        return {
            "cluster-enabled": "yes",
            "cluster-port": str(free_port()),
            "cluster-node-timeout": "2000",
            "cluster-require-full-coverage": "no",
            "repl-diskless-sync-delay": "0",
        }

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def start(self) -> Cluster:
        for node in (*self.nodes, *self.replicas):
            node.start()
        for i, node in enumerate(self.nodes):
            node.call("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            node.call("CLUSTER", "ADDSLOTSRANGE", i * SLOTS // 3, (i + 1) * SLOTS // 3 - 1)
        for node in (*self.nodes[1:], *self.replicas):
            bus = int(node.options["cluster-port"])
            self.nodes[0].call("CLUSTER", "MEET", "127.0.0.1", node.port, bus)
        eventually(lambda: all(self._is_whole(node) for node in (*self.nodes, *self.replicas)))
        for primary, replica in zip(self.nodes, self.replicas, strict=False):
            replica.call("CLUSTER", "REPLICATE", primary.call("CLUSTER", "MYID"))
        for replica in self.replicas:
            eventually(lambda one=replica: one.info("replication").get("master_link_status") == "up")
        return self

    def _is_whole(self, node: Server) -> bool:
        info = node.call("CLUSTER", "INFO").decode()
        known = f"cluster_known_nodes:{len(self.nodes) + len(self.replicas)}\r"
        return all(fact in info for fact in ("cluster_state:ok", known, "cluster_slots_ok:16384"))

    def end(self) -> None:
        for node in (*self.nodes, *self.replicas):
            node.end()

    def holder(self, key: str) -> Server:
        """Return the node that currently holds the key."""
        slot = key_slot(key.encode())
        for low, high, place, *_ in self.nodes[0].call("CLUSTER", "SLOTS"):
            if low <= slot <= high:
                return next(node for node in self.nodes if node.port == place[1])
        raise AssertionError(f"no node holds slot {slot}")

    def domain_on(self, node: Server) -> str:
        """Return the name of a domain that this node holds."""
        names = (f"domain{i}" for i in range(1000))
        return next(name for name in names if self.holder(f"ps:{{{name}}}:epoch") is node)

    def move(self, key: str, target: Server) -> None:
        """Migrate the key's slot, key by key, as a rebalancing does."""
        source, slot = self.holder(key), key_slot(key.encode())
        ids = {node.port: node.call("CLUSTER", "MYID").decode() for node in (source, target)}
        target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source.port])
        source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target.port])
        while found := source.call("CLUSTER", "GETKEYSINSLOT", slot, 1):
            source.call("MIGRATE", "127.0.0.1", target.port, found[0], 0, 5000)
        for node in (target, source, *self.nodes):
            node.call("CLUSTER", "SETSLOT", slot, "NODE", ids[target.port])
        eventually(lambda: self.holder(key) is target)


class Replicated:
    """A primary, two replicas and three Sentinels."""

    def __init__(self, program: str, directory: Path) -> None:
        options = {"repl-diskless-sync-delay": "0", "repl-timeout": "5"}
        self.nodes = [Server(program, directory / f"node{i}", options) for i in range(3)]
        self.sentinels = [
            SentinelServer(directory / f"sentinel{i}", SERVICE, self.nodes[0], quorum=2) for i in range(3)
        ]

    @property
    def url(self) -> str:
        return "redis+sentinel://" + ",".join(f"127.0.0.1:{s.port}" for s in self.sentinels) + f"/{SERVICE}"

    def start(self) -> Replicated:
        for node in self.nodes:
            node.start()
        for replica in self.nodes[1:]:
            replica.call("REPLICAOF", "127.0.0.1", self.nodes[0].port)
        eventually(lambda: self.replicas(self.nodes[0]) == 2)
        for sentinel in self.sentinels:
            sentinel.start()
        eventually(lambda: all(self._is_ready(s) for s in self.sentinels))
        return self

    @staticmethod
    def replicas(node: Server) -> int:
        """Return the number of online replicas."""
        info = node.info("replication")
        return sum("state=online" in info.get(f"slave{i}", "") for i in range(2))

    @staticmethod
    def _is_ready(sentinel: SentinelServer) -> bool:
        """Return whether the Sentinel knows both replicas and both other Sentinels."""
        flat: list[Any] = sentinel.call("SENTINEL", "MASTER", SERVICE)
        found = dict(zip(flat[::2], flat[1::2], strict=True))
        return (found[b"num-slaves"], found[b"num-other-sentinels"]) == (b"2", b"2")

    @contextmanager
    def without_replicas(self) -> Iterator[None]:
        """Kill both replicas, and restore them at the end: Sentinels alone would take 10 s for that."""
        primary = self.primary()
        others = [node for node in self.nodes if node is not primary]
        for node in others:
            node.kill9()
        eventually(lambda: not self.replicas(primary))
        try:
            yield
        finally:
            for node in others:
                node.restart().call("REPLICAOF", "127.0.0.1", primary.port)
            eventually(lambda: self.replicas(primary) == len(others))

    def primary(self) -> Server:
        """Return the current primary according to the first Sentinel."""
        _, port = self.sentinels[0].call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
        return next(node for node in self.nodes if node.port == int(port))

    def end(self) -> None:
        for sentinel in self.sentinels:
            sentinel.end()
        for node in self.nodes:
            node.end()

"""A release of the chart on a cluster with nodes, with the images of the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.chart.chart import together
from tests.e2e.images import Images
from tests.e2e.steps import step
from tests.kubernetes.cluster import CHART, Cluster, CommandFailed, Document
from tests.servers import eventually

NAME = "penstock"  # as on the pages
FULL = NAME  # prefix of the names of its objects
TIMEOUT = "180s"
GONE_S = 90.0  # longer than the longest drain of an edge
SIDES = ("predecessor", "successor")
EDGES = ("tmq", "pubsub", "rqp", "ring")
# full names, as other products define the same kinds
QUEUES, PEERS = ("queues.penstock.dev", "peers.penstock.dev")


# total patience as in the chart, but probed each second, because a rollout waits for each pod in turn
PROBES = {
    "startup": {"periodSeconds": 1, "failureThreshold": 120},
    "readiness": {"periodSeconds": 1, "failureThreshold": 10},
}
# times for rings that close, break and merge in seconds (docs/ring.md), also after two of three nodes were replaced
RING_TIMES = {"own_ring_s": 3, "self_s": 6, "open_s": 2, "find_s": 3, "confirm_s": 8, "vacant_s": 3}
# longest recovery of a ring: 30 s of silence, 30 s to connect, and twice the times above (protos/ring.md)
RING_S = 120.0


@dataclass(frozen=True)
class Ring:
    """The nodes of a release's ring, as reported by `penstock ring status --json`."""

    status: Mapping[str, Any]

    @property
    def is_whole(self) -> bool:
        """Return whether all nodes that report are in one ring, without nodes of another store."""
        names = {node["name"] for node in self.status["nodes"] if not node["is_silent"]}
        return self.status["is_ring"] is True and set(self.status["chains"][0]["nodes"]) == names

    @property
    def is_shared(self) -> bool:
        """Return whether all nodes that report are linked, with nodes of another store among them."""
        alive = [node for node in self.status["nodes"] if not node["is_silent"]]
        names = {node["name"] for node in alive}
        linked = [node[side]["name"] for node in alive for side in SIDES if node.get(side)]
        return len(linked) == len(SIDES) * len(alive) and not names.issuperset(linked)

    def __len__(self) -> int:
        return sum(not node["is_silent"] for node in self.status["nodes"])


class Release:
    def __init__(
        self, cluster: Cluster, namespace: str, images: Images, brings_definitions: bool = True
    ) -> None:
        """Prepare a release; without `brings_definitions` the CustomResourceDefinitions must exist already."""
        self.cluster = cluster
        self.namespace = namespace
        self.images = images
        self._brings_definitions = brings_definitions

    def values(self, tag: str = "", replicas: int = 2) -> dict[str, Any]:
        def image(target: str) -> dict[str, dict[str, str]]:
            return {"image": {"repository": self.images.repository(target), "tag": tag or self.images.tag}}

        said = {
            "edgeDefaults": {**image("edge"), "replicas": replicas},
            "operator": image("operator"),
            "console": {"enabled": True, **image("console")},
        }
        return together(self.surroundings(), said)

    def surroundings(self) -> dict[str, Any]:
        """Return the values that every installation on this cluster needs."""
        name, _, redis_tag = self.images.redis.rpartition(":")
        tagged = {"image": {"tag": self.images.tag}}
        return {
            "crds": {"enabled": self._brings_definitions},
            "edgeDefaults": {**tagged, "probes": PROBES},
            "edges": {
                "pubsub": {"ports": {"text-link": {"enabled": True}}},
                "ring": {"settings": {"node": {"times": RING_TIMES}}},
            },
            "operator": tagged,
            "console": tagged,
            "redis": {
                "image": {"registry": "", "repository": name, "tag": redis_tag},
                "persistence": {"size": "1Gi"},
            },
        }

    def install(self, verb: str = "install", *, timeout: str = TIMEOUT, **settings: Any) -> None:
        """Install or upgrade and wait until every pod is ready. Raise CommandFailed if that fails."""
        with step(f"helm {verb}, every pod ready"):
            self._helm(verb, {**self.values(), **settings}, timeout)

    def upgrade(self, tag: str, replicas: int) -> None:
        with step("helm upgrade, every pod ready"):
            self._helm("upgrade", self.values(tag, replicas))

    def scale(self, edge: str, replicas: int) -> None:
        """Scale an edge with helm, as later upgrades would keep a scale set by kubectl. Raise CommandFailed."""
        edges = self.values()["edges"]
        self.install("upgrade", edges={**edges, edge: {**edges.get(edge, {}), "replicas": replicas}})

    def _helm(self, verb: str, values: Mapping[str, Any], timeout: str = TIMEOUT) -> None:
        words = (verb, NAME, str(CHART), "--values", "-", "--wait", "--timeout", timeout, *self._here)
        self.cluster.helm(*words, given=json.dumps(values))

    def test(self) -> str:
        """Run `helm test` and return the log of its pod. Raise CommandFailed if it fails."""
        with step("helm test"):
            return self.cluster.helm("test", NAME, "--logs", "--timeout", TIMEOUT, *self._here)

    def wait_gone(self) -> None:
        """Wait until no pod of the release is left. Raise AssertionError if one remains."""
        eventually(lambda: not any(map(self._is_ours, self.cluster.items("pods", self.namespace))), GONE_S)

    def remove(self) -> None:
        """Uninstall the release in any state, if it exists; its finalizers would keep the namespace otherwise."""
        words = ("uninstall", NAME, "--ignore-not-found", "--wait", "--timeout", TIMEOUT)
        self.cluster.helm(*words, *self._here)

    @staticmethod
    def _is_ours(pod: Mapping[str, Any]) -> bool:
        """Return whether a pod is of the release; the one of `helm test`, kept for its log, is not counted."""
        name = str(pod["metadata"]["name"])
        return name.startswith(FULL) and name != f"{FULL}-test"

    @property
    def _here(self) -> tuple[str, str]:
        return "--namespace", self.namespace

    # commands in its namespace

    def apply(self, *documents: Document) -> None:
        self.cluster.apply(documents, *self._here)

    def kubectl(self, *words: str) -> str:
        return self.cluster.kubectl(*self._here, *words)

    def wait_ready(self, kinds: str, *names: str) -> None:
        named = names or ("--all",)
        self.kubectl("wait", "--for=condition=Ready", kinds, *named, "--timeout=60s")

    def penstock(self, *words: str) -> str:
        """Run `penstock` in a pod of an edge, with that pod's rights on the store, and return its output."""
        return self.kubectl("exec", f"deployment/{FULL}-tmq", "--", "penstock", *words).removesuffix("\n")

    def cli_json(self, pods: str, *words: str) -> Any:
        """Run `penstock ... --json` in one of these pods and return the parsed output.

        Raise ConnectionError if that fails, as the pod that kubectl chose may just have been killed.
        """
        try:
            return json.loads(self.kubectl("exec", pods, "--", "penstock", *words, "--json"))
        except CommandFailed as error:
            raise ConnectionError(error.said) from None

    def rqprc(self) -> list[str]:
        """Return the machines in the file `.rqprc` of the cluster's programs."""
        found = json.loads(self.kubectl("get", "configmap", f"{FULL}-rqprc", "-o", "json"))
        return [line for line in found["data"]["rqprc"].splitlines() if line and not line.startswith("#")]

    def ring(self) -> Ring:
        """Return the ring as one of its pods sees it. Raise ConnectionError while none answers."""
        return Ring(self.cli_json(f"statefulset/{FULL}-ring", "ring", "status"))

    def wait_one_ring(self, number: int) -> None:
        """Wait for a whole ring of `number` nodes. Raise AssertionError with the last state."""
        eventually(self.ring, RING_S, until=lambda ring: ring.is_whole and len(ring) == number)

    def pods(self, component: str = "") -> list[dict[str, Any]]:
        """Return the pods of a component, without those being deleted and completed ones."""
        found = self.cluster.items("pods", self.namespace)
        mine = [
            each
            for each in found
            if not each["metadata"].get("deletionTimestamp") and each["status"].get("phase") != "Succeeded"
        ]
        return [each for each in mine if each["metadata"]["name"].startswith(f"{FULL}-{component}")]


def is_ready(pod: Mapping[str, Any]) -> bool:
    conditions: Sequence[Mapping[str, str]] = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

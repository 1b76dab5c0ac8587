"""A release of the chart on a cluster with nodes, with the images that tests were given."""

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

NAME = "penstock"  # as the pages call it
FULL = NAME  # the first part of the names of its objects
TIMEOUT = "180s"
GONE_S = 90.0  # more than an edge may take to drain
SIDES = ("predecessor", "successor")
EDGES = ("tmq", "pubsub", "rqp", "ring")
QUEUES, PEERS = "queues.penstock.dev", "peers.penstock.dev"  # other products have such kinds, too


# as patient as the chart's own, and looked at each second: a pod that is replaced waits for the one before it
PROBES = {
    "startup": {"periodSeconds": 1, "failureThreshold": 120},
    "readiness": {"periodSeconds": 1, "failureThreshold": 10},
}
# rings that close, break and merge in seconds, as those of docs/ring.md, also after two of three nodes were replaced
RING_TIMES = {"own_ring_s": 3, "self_s": 6, "open_s": 2, "find_s": 3, "confirm_s": 8, "vacant_s": 3}
# until a ring has healed: 30 s of silence, 30 s of a connect, and twice the times above (protos/ring.md)
RING_S = 120.0


@dataclass(frozen=True)
class Ring:
    """What `penstock ring status --json` says of a release's nodes."""

    told: Mapping[str, Any]

    @property
    def is_whole(self) -> bool:
        """All nodes that tell are in one ring, and none of another store."""
        names = {node["name"] for node in self.told["nodes"] if not node["is_silent"]}
        return self.told["is_ring"] is True and set(self.told["chains"][0]["nodes"]) == names

    @property
    def is_shared(self) -> bool:
        """All nodes that tell are linked, and between them are nodes of another store."""
        alive = [node for node in self.told["nodes"] if not node["is_silent"]]
        names = {node["name"] for node in alive}
        linked = [node[side]["name"] for node in alive for side in SIDES if node.get(side)]
        return len(linked) == len(SIDES) * len(alive) and not names.issuperset(linked)

    def __len__(self) -> int:
        return sum(not node["is_silent"] for node in self.told["nodes"])


class Release:
    def __init__(
        self, cluster: Cluster, namespace: str, images: Images, brings_definitions: bool = True
    ) -> None:
        """brings_definitions: whether they are its own; else they have to be there."""
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
        """Return what any installation on this cluster needs, whoever says the rest."""
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
        """Returns once every pod is ready. Raises CommandFailed."""
        with step(f"helm {verb}, every pod ready"):
            self._helm(verb, {**self.values(), **settings}, timeout)

    def upgrade(self, tag: str, replicas: int) -> None:
        with step("helm upgrade, every pod ready"):
            self._helm("upgrade", self.values(tag, replicas))

    def scale(self, edge: str, replicas: int) -> None:
        """By helm: what kubectl has scaled a later upgrade would not touch. Raises CommandFailed."""
        edges = self.values()["edges"]
        self.install("upgrade", edges={**edges, edge: {**edges.get(edge, {}), "replicas": replicas}})

    def _helm(self, verb: str, values: Mapping[str, Any], timeout: str = TIMEOUT) -> None:
        words = (verb, NAME, str(CHART), "--values", "-", "--wait", "--timeout", timeout, *self._here)
        self.cluster.helm(*words, given=json.dumps(values))

    def test(self) -> str:
        """What the pod of `helm test` logs. Raises CommandFailed."""
        with step("helm test"):
            return self.cluster.helm("test", NAME, "--logs", "--timeout", TIMEOUT, *self._here)

    def wait_gone(self) -> None:
        """Return once no pod of it is left. Raises AssertionError."""
        eventually(lambda: not any(map(self._is_ours, self.cluster.items("pods", self.namespace))), GONE_S)

    def remove(self) -> None:
        """If it is there, whatever state it is in: with it go finalizers that would keep the namespace."""
        words = ("uninstall", NAME, "--ignore-not-found", "--wait", "--timeout", TIMEOUT)
        self.cluster.helm(*words, *self._here)

    @staticmethod
    def _is_ours(pod: Mapping[str, Any]) -> bool:
        """But for that of `helm test`, which is left for whoever wants to read its log."""
        name = str(pod["metadata"]["name"])
        return name.startswith(FULL) and name != f"{FULL}-test"

    @property
    def _here(self) -> tuple[str, str]:
        return "--namespace", self.namespace

    # what one does in its namespace

    def apply(self, *documents: Document) -> None:
        self.cluster.apply(documents, *self._here)

    def kubectl(self, *words: str) -> str:
        return self.cluster.kubectl(*self._here, *words)

    def wait_ready(self, kinds: str, *names: str) -> None:
        named = names or ("--all",)
        self.kubectl("wait", "--for=condition=Ready", kinds, *named, "--timeout=60s")

    def penstock(self, *words: str) -> str:
        """What the command prints in a pod of an edge, with that pod's rights on the store."""
        return self.kubectl("exec", f"deployment/{FULL}-tmq", "--", "penstock", *words).removesuffix("\n")

    def told(self, pods: str, *words: str) -> Any:
        """What the command tells as JSON in one of these pods. Raises ConnectionError while none can tell: the one that
        kubectl takes may have been killed a moment ago."""
        try:
            return json.loads(self.kubectl("exec", pods, "--", "penstock", *words, "--json"))
        except CommandFailed as error:
            raise ConnectionError(error.said) from None

    def ring(self) -> Ring:
        """As a pod of the ring sees it. Raises ConnectionError while none can tell."""
        return Ring(self.told(f"statefulset/{FULL}-ring", "ring", "status"))

    def wait_one_ring(self, number: int) -> None:
        """Raises AssertionError with what was told last."""
        eventually(self.ring, RING_S, until=lambda ring: ring.is_whole and len(ring) == number)

    def pods(self, component: str = "") -> list[dict[str, Any]]:
        """Those that are to stay."""
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

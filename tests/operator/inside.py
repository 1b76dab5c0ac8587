"""Run parts of the operator in the test's process, with the real API server."""

from __future__ import annotations

import base64
import json
import ssl
from dataclasses import dataclass, field

from penstock_operator.cluster.api import Access, Api
from penstock_operator.cluster.mirror import Mirror
from penstock_operator.cluster.resources import Kind, Resource
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.status.events import Recorder
from penstock_operator.status.statuses import Statuses

from tests.kubernetes.cluster import Cluster
from tests.operator.resource_documents import Seen

PLURAL = {"queue": Kind.QUEUE, "peer": Kind.PEER, "redrive": Kind.REDRIVE}


def access(cluster: Cluster, token: str = "") -> Access:
    """Return the access of the kubeconfig, or with another token."""
    config = json.loads(cluster.kubeconfig.read_text("utf-8"))
    server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(server["certificate-authority-data"]).decode()
    headers = {"Authorization": f"Bearer {token or user['token']}"}
    return Access(server["server"], headers, ssl.create_default_context(cadata=authority))


def read(seen: Seen, kind: str, name: str) -> Resource:
    return Resource.read(PLURAL[kind], seen.get(kind, name))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Inside:
    """Parts that write statuses. The test advances the time."""

    api: Api
    clock: Clock = field(default_factory=Clock)
    metrics: Metrics = field(default_factory=Metrics)
    mirror: Mirror = field(default_factory=Mirror)

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.api, self.metrics)
        self.statuses = Statuses(self.api, self.recorder, self.mirror, self.metrics, self.clock)

    def count(self, name: str) -> float:
        """Return the sum of all samples of a counter."""
        lines = self.metrics.render().decode().splitlines()
        return sum(
            float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((name + "{", name + " "))
        )

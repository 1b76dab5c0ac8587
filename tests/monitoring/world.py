"""All processes with metrics: every edge and the console under `penstock up`, a System V bridge and an operator."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chart.chart import NAME, RELEASE
from tests.cli.shell import Shell, Up, running
from tests.kubernetes.cluster import Cluster
from tests.monitoring.others import LOCAL_ONES, NARROW, Others
from tests.monitoring.prometheus import Target
from tests.monitoring.traffic import FULL, NUMBER, ONWARD, ORDERS, OTHER_NUMBER, UNKNOWN_NUMBER, Traffic
from tests.operator.conftest import let_go
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen, queue
from tests.reports import report
from tests.servers import PROGRAMS, Server, eventually
from tests.sysv.local import Keys, make
from tests.sysv.process import BridgeProgram

NAMESPACE = "shop"
REPORT = "ps:{registry}:report"
NO_COLLECTOR = "tracing.endpoint=http://127.0.0.1:1"  # results of exports of traces are counted anyway
SETTINGS = ("metrics.queues=on", "metrics.queue_latencies=on", "edges.tmq.workers=2", NO_COLLECTOR)


@dataclass(slots=True)
class World:
    store: Server
    keeper: Keeper
    up: Up
    bridge: BridgeProgram
    operator: OperatorProgram
    seen: Seen
    traffic: Traffic
    others: Others

    def targets(self) -> dict[str, Target]:
        """Return targets by component, with the labels of a PodMonitor."""
        places: dict[str, tuple[str, int]] = {
            name: (edge["health"]["host"], edge["health"]["port"])
            for name, edge in self.up.announcement["edges"].items()
        }
        console = self.up.announcement["console"]["health"]
        places["console"] = (console["host"], console["port"])
        (health,) = self.bridge.events("health_listening")
        places |= {"sysv": (health["host"], health["port"]), "operator": ("127.0.0.1", self.operator.port)}
        return {name: Target(*place, _labels(name)) for name, place in places.items()}

    def use_console(self) -> None:
        """Send requests to the console."""
        url = f"{self.up.announcement['console']['url']}api/v1/overview"
        token = Path(self.up.announcement["console"]["tokenFile"]).read_text().strip()
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()

    def lead(self, peer: str, name: str, number: int, host: str, port: int) -> None:
        """Create a transmission queue with that name to this peer."""
        self.keeper.apply_peer(peer, "file", protocol="rqp-mca", addresses=[f"{host}:{port}"])
        remote = {"protocol": "rqp-mca", "queueId": number, "peers": [peer]}
        self.keeper.declare(name, remote=remote)

    def report(self, **fields: Any) -> None:
        """Store a report, as the analytics job does."""
        found = report(**{"now_ms": int(time.time() * 1000), **fields})
        self.store.call("SET", REPORT, b"%d " % found.now_ms + found.encode())


def _labels(name: str) -> Mapping[str, str]:
    pod = f"{NAME}-{name}-0" if name != "sysv" else "till-0"
    release = {"app_kubernetes_io_component": name, "app_kubernetes_io_instance": RELEASE}
    return {"namespace": NAMESPACE, "pod": pod, "container": name, **release}


@contextmanager
def world(folder: Path, defined: Cluster, namespace: str) -> Iterator[World]:
    """All processes are ready, and messages pass through all of them."""
    store = Server(next(iter(PROGRAMS)), folder / "store").start()
    keys = Keys()
    keeper, shell = Keeper(store), Shell(folder, {"REDIS_URL": store.url})
    keeper.declare(ORDERS, bindings={"rqpMca": {"queueId": NUMBER}})
    keeper.declare("arrived", bindings={"rqpMca": {"queueId": OTHER_NUMBER}})
    keeper.declare(FULL, maxLength=1)
    keeper.put(FULL, b"one")
    keeper.declare("local")
    keeper.declare(LOCAL_ONES)
    keeper.declare("dying")
    keeper.kill("dying", 2)
    operator = OperatorProgram(
        defined, store.url, folder, namespaces=namespace, sweep_s=1, queue_metrics="true", max_queues=50
    )
    bridge: BridgeProgram | None = None
    try:
        key, narrow = keys.new(), keys.new()
        make(key)
        make(narrow).max_size = NARROW
        others = Others(store.url, folder, keeper)
        words = [word for pair in (*SETTINGS, *others.settings) for word in ("--set", pair)]
        operator.start()
        with running(shell, *words) as up:
            mappings = ("--out", f"{hex(key)}:local", "--in", f"{hex(narrow)}:{LOCAL_ONES}")
            bridge = BridgeProgram(store.url, folder, *mappings, "--set", "metrics.queues=on").started()
            operator.ready()
            made = World(
                store, keeper, up, bridge, operator, Seen(defined, namespace), Traffic(up, key), others
            )
            made.seen.apply(queue("declared"), queue("passing", deletionPolicy="Delete"))
            made.report()
            made.lead("here", ONWARD, OTHER_NUMBER, *made.traffic.place("rqp", "mca"))
            made.lead("nowhere", "stuck", UNKNOWN_NUMBER, "127.0.0.1", 1)
            keeper.put("stuck", b"one")
            made.use_console()
            eventually(lambda: keeper.find("passing"))
            made.seen.delete("queue", "passing")
            made.traffic.start()
            yield made
            made.traffic.end()
    finally:
        others.end()
        operator.kill()
        let_go(defined)
        if bridge is not None:
            bridge.kill9()
        keys.remove_all()
        store.end()

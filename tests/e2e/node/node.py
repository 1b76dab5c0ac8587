"""A cluster of one node made of real components, which the other modules configure; this one starts them in order.

The thread that starts it is on the node's network and can connect to Services and pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tests.e2e.node import control
from tests.e2e.node.containers import Containers
from tests.e2e.node.control import Control
from tests.e2e.node.kubelet import NAME, Kubelet, Proxy
from tests.e2e.node.machine import Machine, own_network
from tests.e2e.node.names import Names
from tests.e2e.node.place import Place, clear_away
from tests.e2e.node.volumes import make_volumes
from tests.e2e.steps import step
from tests.kubernetes.cluster import Cluster
from tests.servers import eventually

READY_S = 60.0


class Node:
    """A node; `cluster` is the administrator's view of it."""

    def __init__(self, place: Place, machine: Machine, pause: str) -> None:
        self.place = place
        self.machine = machine
        self.control = Control(place)
        self.cluster: Cluster = self.control.api.as_user()
        self.containers = Containers(place, machine, pause)
        kubeconfig = self.control.kubeconfig
        self.kubelet = Kubelet(place, machine, kubeconfig(control.KUBELET), self.containers.socket)
        self._proxy = Proxy(place, machine, kubeconfig(control.PROXY))
        self._names = Names(place, kubeconfig(control.DNS))

    def start(self) -> None:
        """Start all components and wait until the node is Ready. Raise AssertionError with the end of a log."""
        self.containers.start()
        self.control.start()
        self.kubelet.start()
        self._proxy.start()
        self._names.start()
        make_volumes(self.cluster, self.place)
        eventually(lambda: self.is_ready and self._admits_pods, READY_S)

    @property
    def is_ready(self) -> bool:
        nodes = [node for node in self.cluster.items("nodes") if node["metadata"]["name"] == NAME]
        conditions = [each for node in nodes for each in node["status"].get("conditions", ())]
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    @property
    def _admits_pods(self) -> bool:
        """Return whether a controller has created the account that pods require."""
        return "default" in self.cluster.kubectl("get", "serviceaccounts", "-o", "name")

    def end(self) -> None:
        """End all components, the machine first, so that containers and their runtime end together."""
        self.machine.end()
        for part in (self._names, self._proxy, self.kubelet, self.containers):
            part.daemon.end()
        self.control.end()


@contextmanager
def running(pause: str, images: Sequence[str]) -> Iterator[Node]:
    """Run a Ready node with these images of buildah's storage, and put this thread on its network."""
    clear_away()
    with ExitStack() as stack:
        place = Place.make()
        stack.callback(place.remove)
        stack.enter_context(own_network())
        machine = Machine(place.folder.name)
        stack.callback(machine.end)
        node = Node(place, machine, pause)
        stack.callback(node.end)
        with step("the node is Ready"):
            node.start()
        with step("the node has the images"):
            node.containers.load([pause, *images])
        yield node

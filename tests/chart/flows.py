"""Connections that the NetworkPolicies of a release allow: both sender and receiver must allow them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.chart.chart import NAMESPACE, Object, Rendered, pod_of

Labels = dict[str, str]
COMPONENT = "app.kubernetes.io/component"


class Flows:
    """Pods are identified by their labels, all in the release's namespace; None is outside the cluster."""

    def __init__(self, rendered: Rendered) -> None:
        self._policies = rendered.of("NetworkPolicy")
        self.pods: dict[str, Labels] = {}
        for each in rendered.objects.values():
            if (pod := pod_of(each)) is not None:
                labels = (pod.get("metadata") or {}).get("labels", {})
                self.pods[labels[COMPONENT]] = labels

    def passes(
        self, sender: Labels | None, receiver: Labels | None, port: int, protocol: str = "TCP"
    ) -> bool:
        """Return whether a connection is allowed; `port` is the container's, as policies apply behind Services."""
        return self._way(sender, "egress", "to", receiver, port, protocol) and self._way(
            receiver, "ingress", "from", sender, port, protocol
        )

    def _way(
        self, own: Labels | None, way: str, text: str, other: Labels | None, port: int, protocol: str
    ) -> bool:
        """Return whether one direction is allowed: no policy selects the pod, or a rule of one that does allows it."""
        if own is None:
            return True
        policies = [each for each in self._policies if _is_of(each, own, way)]
        rules = [rule for each in policies for rule in each["spec"].get(way) or ()]
        return not policies or any(
            _has_port(rule, port, protocol) and _has(rule.get(text), other) for rule in rules
        )


def _is_of(policy: Object, labels: Labels, way: str) -> bool:
    spec = policy["spec"]
    return way.capitalize() in spec["policyTypes"] and selects(spec["podSelector"], labels)


def selects(selector: Any, labels: Labels) -> bool:
    """Return whether a label selector matches."""
    wanted = selector.get("matchLabels", {}).items() <= labels.items()
    return wanted and all(
        {"In": labels.get(each["key"]) in each.get("values", ()), "Exists": each["key"] in labels}[
            each["operator"]
        ]
        for each in selector.get("matchExpressions", ())
    )


def _has_port(rule: Any, port: int, protocol: str) -> bool:
    return not rule.get("ports") or any(
        each.get("protocol", "TCP") == protocol
        and ("port" not in each or each["port"] <= port <= each.get("endPort", each["port"]))
        for each in rule["ports"]
    )


def _has(peers: Any, labels: Labels | None) -> bool:
    """Return whether a peer matches; addresses are outside the cluster, namespaces have only their name's label."""
    return not peers or any(_is(peer, labels) for peer in peers)


def _is(peer: Any, labels: Labels | None) -> bool:
    if labels is None:
        return "ipBlock" in peer
    if "ipBlock" in peer:
        return False
    namespace = {"kubernetes.io/metadata.name": NAMESPACE}
    return selects(peer.get("namespaceSelector", {}), namespace) and selects(
        peer.get("podSelector", {}), labels
    )


def needs_store(rendered: Rendered) -> Iterator[str]:
    """Yield the components that have the store's URL."""
    for _, pod in rendered.pods():
        for container in pod["spec"]["containers"]:
            if "REDIS_URL" in [each["name"] for each in container.get("env", ())]:
                yield pod["metadata"]["labels"][COMPONENT]

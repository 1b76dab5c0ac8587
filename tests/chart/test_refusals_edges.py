"""The same of what is said of edges: by _edge-checks.tpl."""

from __future__ import annotations

import pytest

from tests.chart.chart import Values, must_refuse, nested, together

REFUSALS: dict[str, tuple[Values, str]] = {
    "a way in from outside that there is not": (
        nested("edges.tmq.service.externalTrafficPolicy", "Local"),
        "edges.tmq.service.externalTrafficPolicy: nobody comes to a Service of type ClusterIP from outside: leave it "
        "out, or set service.type",
    ),
    "a balancer's class without a balancer": (
        nested("edges.tmq.service", {"type": "NodePort", "loadBalancerClass": "a/b"}),
        "edges.tmq.service.loadBalancerClass: it is for a Service of type LoadBalancer",
    ),
    "more asked for than there may be": (
        nested("edgeDefaults.resources", {"requests": {"memory": "128Mi"}, "limits": {"memory": "64Mi"}}),
        "edges.pubsub.resources: it asks for 128Mi of memory and may have 64Mi at most: make requests.memory less, or "
        "limits.memory more",
    ),
    "two families of one stack": (
        nested("edges.tmq.service.ipFamilies", ["IPv4", "IPv6"]),
        "edges.tmq.service.ipFamilies: two of them need ipFamilyPolicy PreferDualStack or RequireDualStack",
    ),
    "an edge that there is not": (
        nested("edges.tqm.replicas", 3),
        "edges.tqm: there is no edge of that name, there are: pubsub, ring, rqp, tmq; one of your own image says its "
        "ports",
    ),
    "nodes of a ring without names": (
        nested("edges.ring.workload", "Deployment"),
        "edges.ring.workload: others dial a node by its pod's name, and what it has to send waits under it: leave it "
        "StatefulSet; without a node",
    ),
    "nodes of a ring that come and go": (
        nested("edges.ring.autoscaling.type", "hpa"),
        "edges.ring.autoscaling: what a node has to send waits under its name, and nobody would send what one left "
        "that is scaled away: say replicas",
    ),
    "keda without Prometheus": (
        nested("edges.tmq.autoscaling.type", "keda"),
        "edges.tmq.autoscaling.keda: serverAddress is missing, the URL of Prometheus; or say triggers of your own",
    ),
    "more at least than at most": (
        nested("edges.tmq.autoscaling", {"type": "hpa", "minReplicas": 5, "maxReplicas": 3}),
        "edges.tmq.autoscaling: minReplicas 5 is more than maxReplicas 3",
    ),
    "a pod that is killed before it has drained": (
        nested("edges.tmq.terminationGracePeriodSeconds", 20),
        "edges.tmq.terminationGracePeriodSeconds: 20 is less than the 37 seconds that drain takes",
    ),
    "a drain that takes longer than the pod has": (
        together(
            nested("edges.tmq.terminationGracePeriodSeconds", 60),
            nested("edges.tmq.drain.timeoutSeconds", 90),
        ),
        "60 is less than the 97 seconds",
    ),
    "two bounds of disruption": (
        nested("edges.tmq.pdb", {"minAvailable": 1, "maxUnavailable": 1}),
        "edges.tmq.pdb: minAvailable and maxUnavailable are both said: leave one of them out",
    ),
    "certificates of clients without a Secret": (
        nested("edges.tmq.tls.clientCA", True),
        "edges.tmq.tls: clientCA needs secretName, a Secret with ca.crt",
    ),
    "certificates for a listener that there is not": (
        nested("edges.tmq.tls", {"secretName": "c", "listeners": ["documnet"]}),
        'edges.tmq.tls.listeners: there is no listener "documnet", there are: document, reference',
    ),
    "certificates for a listener that is closed": (
        together(
            nested("edges.tmq.tls", {"secretName": "c", "listeners": ["reference"]}),
            nested("edges.tmq.ports.tmq-reference.enabled", False),
        ),
        'edges.tmq.tls.listeners: there is no listener "reference", there are: document',
    ),
    "certificates without a Secret": (
        nested("edges.tmq.tls.listeners", ["document"]),
        "edges.tmq.tls: listeners needs secretName, a Secret with tls.crt and tls.key",
    ),
    "a test through a port that there is not": (
        nested("edges.tmq.helmTest", "telex"),
        'edges.tmq.helmTest: there is no port "telex"',
    ),
    "an edge by the name of another part": (
        nested("edges.operator", {}),
        "edges.operator: another part of the chart has that name",
    ),
    "a port by the name of the chart's own": (
        nested("edges.tmq.ports.health", {"port": 1}),
        "edges.tmq.ports.health: the port of that name is the chart's own: see healthPort",
    ),
    "an edge on nodes' network that its store would not let in": (
        nested("edges.rqp.hostNetwork", True),
        "edges.rqp.hostNetwork: the chart's own Redis lets in only pods, and such a one comes by its node's address: "
        "say networkPolicy.redisFrom",
    ),
    "a port that would be open all the same": (
        nested("edges.tmq.ports.tmq-reference", None),
        "edges.tmq.ports.tmq-reference: taken out, it would be open all the same: say enabled: false",
    ),
    "a listener elsewhere than its port": (
        nested("edges.tmq.settings.listeners.document.port", 7000),
        "edges.tmq.settings.listeners.document.port: edges.tmq.ports.tmq-document says 6161: say it there alone",
    ),
    "cast elsewhere than its port": (
        nested("edges.rqp.settings.cast.request_port", 7000),
        "edges.rqp.settings.cast.request_port: edges.rqp.ports.rqp-cast says 11312",
    ),
    "a node without beacons": (
        nested("edges.ring.ports.ring-beacon.enabled", False),
        "edges.ring.ports.ring-beacon: it is open as long as ring is: close that one",
    ),
    "a node that would be called by a Service that there is not": (
        nested("edges.ring.peersService", False),
        "edges.ring.peersService: env.PENSTOCK_EDGES__RING__NODE__ADVERTISE needs it",
    ),
    "nodes that dial in plain what speaks TLS": (
        nested("edges.ring.tls.secretName", "c"),
        'edges.ring.tls: pods would dial the listener "ring" in plain: name others in listeners, '
        "or say settings.node.dial.tls",
    ),
    "no pods by a HorizontalPodAutoscaler": (
        nested("edges.rqp.autoscaling", {"type": "hpa", "minReplicas": 0}),
        "edges.rqp.autoscaling.minReplicas: a HorizontalPodAutoscaler leaves 1 at least; keda can have 0",
    ),
    "two ports of one number": (
        nested("edges.tmq.ports.tmq-document.port", 6162),
        "edges.tmq.ports.tmq-reference: TCP 6162 is that of tmq-document, too: give each its own",
    ),
    "a port that is the health port": (
        nested("edges.rqp.ports.rqp-mca.port", 9161),
        "edges.rqp.ports.rqp-mca: TCP 9161 is that of healthPort, too",
    ),
    "two ports of one number of the Service": (
        nested("edges.tmq.ports.tmq-document.servicePort", 6162),
        "edges.tmq.ports.tmq-reference: TCP 6162 of the Service is that of tmq-document, too",
    ),
    "two ports of one listener": (
        nested("edges.tmq.ports.again", {"port": 6170, "listener": "document"}),
        "edges.tmq.ports.tmq-document: listener document is that of again, too",
    ),
    "a port of nodes that no node has": (
        nested("edges.rqp.ports.rqp-mca.nodePort", 30001),
        "edges.rqp.ports.rqp-mca.nodePort: a Service of type ClusterIP has none: set edges.rqp.service.type",
    ),
    "a budget that lets nobody go": (
        nested("edges.tmq.pdb.minAvailable", 2),
        "edges.tmq.pdb.minAvailable: 2 of 2 pods: none could ever be evicted, and drained nodes would wait for ever",
    ),
    "a budget of nobody": (
        nested("edges.tmq.pdb.maxUnavailable", 0),
        "edges.tmq.pdb.maxUnavailable: no pod could ever be evicted, and drained nodes would wait for ever",
    ),
    "a budget of nobody, in per cent": (
        nested("edges.tmq.pdb.minAvailable", "100%"),
        "edges.tmq.pdb.minAvailable: 100% of 2 pods: none could ever be evicted",
    ),
    "a budget of nobody, in per cent that are counted upwards": (
        nested("edges.tmq.pdb.minAvailable", "51%"),
        "edges.tmq.pdb.minAvailable: 51% of 2 pods: none could ever be evicted",
    ),
    "a budget of nobody once one is there": (
        nested(
            "edges.tmq",
            {
                "pdb": {"minAvailable": 1},
                "autoscaling": {"type": "keda", "minReplicas": 0, "keda": {"serverAddress": "http://p"}},
            },
        ),
        "edges.tmq.pdb.minAvailable: 1 of 1 pods",
    ),
    "a budget of the only pod": (
        nested("edges.tmq", {"replicas": 1, "pdb": {"minAvailable": "50%"}}),
        "edges.tmq.pdb.minAvailable: 50% of 1 pods: none could ever be evicted",
    ),
    "nothing to scale by": (
        nested("edges.tmq.autoscaling", {"type": "hpa", "hpa": {"targetCPUUtilizationPercentage": None}}),
        "edges.tmq.autoscaling.hpa: nothing to scale by: say a target of CPU or memory, or metrics",
    ),
    "a label by which the chart finds its pods": (
        nested("edges.tmq.podLabels", {"app.kubernetes.io/component": "mine"}),
        "edges.tmq.podLabels: the label app.kubernetes.io/component is the chart's own: leave it out",
    ),
    "the same of a Service": (
        nested("edges.tmq.service.labels", {"app.kubernetes.io/component": "mine"}),
        "edges.tmq.service.labels: the label app.kubernetes.io/component is the chart's own",
    ),
    "a variable of the chart, again": (
        nested("edges.tmq.extraEnv", [{"name": "REDIS_URL", "value": "redis://a"}]),
        "edges.tmq: the variable REDIS_URL is there twice, by the chart or by another value: leave it out",
    ),
    "a variable of the chart, by env": (
        nested("edges.tmq.env", {"POD_IP": "10.1.2.3"}),
        "edges.tmq: the variable POD_IP is there twice",
    ),
    "a Service of no ports": (
        nested(
            "edges.tmq",
            {
                "service": {"type": "NodePort"},
                "ports": {"tmq-document": {"expose": False}, "tmq-reference": {"expose": False}},
            },
        ),
        "edges.tmq.ports: none is exposed, and a Service of type NodePort has one at least: set service.type=ClusterIP",
    ),
    "a range that ends before it begins": (
        nested("edges.rqp.portRanges", [{"port": 11320, "endPort": 11300}]),
        "edges.rqp.portRanges: endPort 11300 is less than port 11320",
    ),
    "a headless Service with a port of its own": (
        nested(
            "edges.tmq", {"service": {"clusterIP": "None"}, "ports": {"tmq-document": {"servicePort": 61}}}
        ),
        "edges.tmq.ports.tmq-document.servicePort: a headless Service has no ports but the pods' own: leave it out",
    ),
    "a headless Service of nodes": (
        nested("edges.tmq.service", {"clusterIP": "None", "type": "NodePort"}),
        "edges.tmq.service.clusterIP: None is for a Service of type ClusterIP",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_an_edge_that_cannot_be_is_refused(what: str) -> None:
    must_refuse(*REFUSALS[what])

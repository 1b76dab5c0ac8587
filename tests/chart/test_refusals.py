"""What cannot be is refused in words that say what to do: by values.schema.json, _checks.tpl or _edge-checks.tpl."""

from __future__ import annotations

import pytest

from tests.chart.chart import Refused, Values, nested, render, together
from tests.chart.switches import EXTERNAL

EDGES = ("tmq", "pubsub", "rqp", "ring")
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
    "devices that the pod does not claim": (
        nested("edges.tmq.resources.claims", [{"name": "gpu"}]),
        "additional properties 'claims' not allowed",
    ),
    "an alert that there is not": (
        nested("monitoring.prometheusRule.disabled", ["PenstockEdgeDwon"]),
        'monitoring.prometheusRule.disabled: there is no alert "PenstockEdgeDwon", there are: Penstock',
    ),
    "a password beside the Secret that says it": (
        nested("redis.auth", {"existingSecret": "store", "adminPassword": "s3cret"}),
        "redis.auth.adminPassword: the Secret of redis.auth.existingSecret says it: leave one of the two out",
    ),
    "TLS to the chart's own Redis": (
        nested("externalRedis.tls.existingSecret", "tls"),
        "externalRedis.tls.existingSecret: the chart's own Redis would be used, which has no TLS",
    ),
    "a query of what nobody tells": (
        together(
            nested("operator.enabled", False),
            nested("edges.tmq.autoscaling", {"type": "keda", "keda": {"serverAddress": "http://p:9090"}}),
        ),
        "edges.tmq.autoscaling.keda.query: what it asks for is told by the operator, which is off",
    ),
    "a setting of Redis in two ways of writing it": (
        nested("redis.config", {"maxclients": "100", "MaxClients": "200"}),
        "it is there as MaxClients, too: leave one of the two out",
    ),
    "a name that there is not": (nested("edges.tmq.replicaz", 3), "'replicaz' not allowed"),
    "one at the top": (nested("edgez", {}), "'edgez' not allowed"),
    "one in a nested map": (nested("redis.persistence.siz", "1Gi"), "'siz' not allowed"),
    "another kind of value": (nested("edges.tmq.replicas", "three"), "/edges/tmq/replicas"),
    "less than nothing": (nested("edges.tmq.replicas", -1), "minimum: got -1, want 0"),
    "hpa and keda": (
        nested("edges.tmq.autoscaling.type", "hpa,keda"),
        "value must be one of 'none', 'hpa', 'keda'",
    ),
    "a number that is none": (
        nested("edgeDefaults.resources.limits.memory", "lots"),
        "'lots' does not match pattern",
    ),
    "more asked for than there may be": (
        nested("edgeDefaults.resources", {"requests": {"memory": "128Mi"}, "limits": {"memory": "64Mi"}}),
        "edges.pubsub.resources: it asks for 128Mi of memory and may have 64Mi at most: make requests.memory less, or "
        "limits.memory more",
    ),
    "the same of CPU": (
        nested("redis.resources", {"requests": {"cpu": "1500m"}, "limits": {"cpu": 1}}),
        "redis.resources: it asks for 1500m of cpu and may have 1 at most",
    ),
    "a label that is none": (nested("commonLabels.team", "of queues"), "'of queues' does not match pattern"),
    "a label's name that is none": (
        nested("edgeDefaults.podLabels", {"a b": "1"}),
        "invalid propertyName 'a b'",
    ),
    "a URL beside the Secret that says it": (
        {
            "redis": {"enabled": False},
            "externalRedis": {"url": "redis://there:6379", "existingSecret": "store"},
        },
        "externalRedis.url: the Secret of externalRedis.existingSecret says it: leave one of the two out",
    ),
    "all namespaces and some": (
        nested("operator.watch", {"allNamespaces": True, "namespaces": ["east"]}),
        "operator.watch: allNamespaces has all of them, and namespaces some: leave one of the two out",
    ),
    "two families of one stack": (
        nested("edges.tmq.service.ipFamilies", ["IPv4", "IPv6"]),
        "edges.tmq.service.ipFamilies: two of them need ipFamilyPolicy PreferDualStack or RequireDualStack",
    ),
    "more pods than there are": (
        nested("edges.tmq.pdb.maxUnavailable", "120%"),
        "'120%' does not match pattern",
    ),
    "a volume that nobody may mount": (
        nested("redis.persistence.accessModes", []),
        "minItems: got 0, want 1",
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
    "an Ingress of no name": (
        nested("console", {"enabled": True, "ingress": {"enabled": True}}),
        "console.ingress: say hosts, the names by which browsers come",
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
    "a port that there cannot be": (
        nested("edges.tmq.ports.tmq-document.port", 70000),
        "maximum: got 70,000",
    ),
    "a port whose name is too long": (
        nested("edges.tmq.ports.a-name-of-seventeen", {"port": 1}),
        "at '/edges/tmq/ports': additional properties 'a-name-of-seventeen' not allowed",
    ),
    "an edge by the name of another part": (
        nested("edges.operator", {}),
        "edges.operator: another part of the chart has that name",
    ),
    "an edge whose name is none": (nested("edges.Telex", {}), "at '/edges': additional properties 'Telex'"),
    "a port by the name of the chart's own": (
        nested("edges.tmq.ports.health", {"port": 1}),
        "edges.tmq.ports.health: the port of that name is the chart's own: see healthPort",
    ),
    "a workload of another kind": (
        nested("edges.tmq.workload", "DaemonSet"),
        "value must be one of 'Deployment', 'StatefulSet'",
    ),
    "no store": (
        nested("redis.enabled", False),
        "no store: set redis.enabled, externalRedis.url or externalRedis.existingSecret",
    ),
    "no store, and no edge either": (
        {"redis": {"enabled": False}, "edges": {name: {"enabled": False} for name in EDGES}},
        "no store: set redis.enabled, externalRedis.url or externalRedis.existingSecret",
    ),
    "two stores": (
        nested("externalRedis.url", "redis://store.example/0"),
        "externalRedis.url: the chart's own Redis would be used: set redis.enabled=false, or leave it out",
    ),
    "two stores, one by a Secret": (
        nested("externalRedis.existingSecret", "store"),
        "externalRedis.existingSecret: the chart's own Redis would be used",
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
    "a port whose name is a number": (
        nested("edges.tmq.ports.11", {"port": 11}),
        "'11' does not match pattern '[a-z]'",
    ),
    "a port whose name has two dashes": (nested("edges.tmq.ports.a--b", {"port": 11}), "'not' failed"),
    "an account that everybody has": (
        nested("operator.serviceAccount.create", False),
        "operator.serviceAccount: without create it needs name",
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
    "a StatefulSet whose name is too long": (
        together(
            {"fullnameOverride": "a" * 40},
            nested("edges.a-long-name", {"workload": "StatefulSet", "ports": {"a": {"port": 1}}}),
            nested("edges.an-even-longer", {"workload": "StatefulSet", "ports": {"a": {"port": 1}}}),
        ),
        "edges.an-even-longer: " + "a" * 40 + "-an-even-longer has more than 52 characters",
    ),
    "a store that acknowledges before it has": (
        nested("redis.config", {"AppendFsync": "no"}),
        "redis.config.AppendFsync: otherwise than the chart has it, the store would lose what it acknowledged",
    ),
    "a store that throws messages away": (
        nested("redis.config", {"maxmemory-policy": "allkeys-lru"}),
        "redis.config.maxmemory-policy: otherwise than the chart has it",
    ),
    "memory of the store by the way": (nested("redis.config", {"maxmemory": "1gb"}), "say redis.maxmemory"),
    "more memory than the pod has": (
        nested("redis.maxmemory", "4gb"),
        "redis.maxmemory: 4gb is not less than redis.resources.limits.memory, 1Gi",
    ),
    "more memory than a number says": (
        nested("redis", {"maxmemory": "600m", "resources": {"limits": {"memory": 500000000}}}),
        "redis.maxmemory: 600m is not less than redis.resources.limits.memory, 500000000",
    ),
    "a volume of no size": (nested("redis.persistence.size", "lots"), "/redis/persistence/size"),
    "a URL of something else": (
        together(EXTERNAL, nested("externalRedis.url", "http://a")),
        "/externalRedis/url",
    ),
    "a password that no URL can have": (nested("redis.auth.edgePassword", "a b"), "/redis/auth/edgePassword"),
    "users of Redis by the way": (
        nested("redis.config", {"requirepass": "x"}),
        "redis.config.requirepass: the chart says that itself",
    ),
    "memory that Redis does not understand": (nested("redis.maxmemory", "1Gi"), "/redis/maxmemory"),
    "every pod counted twice": (
        nested("monitoring", {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}),
        "monitoring: podMonitor and serviceMonitor are both on: everything would be counted twice",
    ),
    "a level of logs that there is not": (nested("log.level", "LOUD"), "value must be one of 'DEBUG'"),
    "a hook that helm does not wait for": (
        nested("operator.uninstallHook.timeoutSeconds", 600),
        "maximum: got 600, want 240",
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
    "a name that no Service can have": (
        {"fullnameOverride": "My_Queues"},
        "the name My_Queues is none that a Service can have: say a fullnameOverride of small letters",
    ),
    "a name that no label can have": (
        {"fullnameOverride": "queues", "nameOverride": "my queues"},
        "nameOverride: my queues is no label's value",
    ),
    "a label by which the chart finds its pods": (
        nested("edges.tmq.podLabels", {"app.kubernetes.io/component": "mine"}),
        "edges.tmq.podLabels: the label app.kubernetes.io/component is the chart's own: leave it out",
    ),
    "the same of the operator": (
        nested("operator.podLabels", {"app.kubernetes.io/name": "mine"}),
        "operator.podLabels: the label app.kubernetes.io/name is the chart's own",
    ),
    "the same of all": (
        {"commonLabels": {"app.kubernetes.io/instance": "mine"}},
        "commonLabels: the label app.kubernetes.io/instance is the chart's own",
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
    "a variable of the operator's, again": (
        nested("operator.extraEnv", [{"name": "PENSTOCK_OPERATOR_SWEEP_S", "value": "9"}]),
        "operator: the variable PENSTOCK_OPERATOR_SWEEP_S is there twice",
    ),
    "executors on a volume of one node": (
        nested("analytics", {"enabled": True, "executors": {"enabled": True}}),
        "analytics.executors: pods on several nodes write to one output: say analytics.output.url",
    ),
    "an output of two places": (
        nested("analytics", {"enabled": True, "output": {"url": "s3a://b/p", "existingClaim": "c"}}),
        "analytics.output: url and existingClaim are two places",
    ),
    "a heap that is all of the container": (
        nested("analytics", {"enabled": True, "driverMemory": "4g"}),
        "analytics.driverMemory: 4g is not less than analytics.resources.limits.memory, 4Gi",
    ),
    "a variable of the analytics', again": (
        nested("analytics", {"enabled": True, "extraEnv": [{"name": "SPARK_LOCAL_DIRS", "value": "/a"}]}),
        "analytics: the variable SPARK_LOCAL_DIRS is there twice",
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
    "words in place of seconds": (
        nested("edges.tmq.drain.spreadSeconds", "soon"),
        "/edges/tmq/drain/spreadSeconds",
    ),
    "a Secret without a name": (
        nested("global.imagePullSecrets", [{"nam": "x"}]),
        "/global/imagePullSecrets/0",
    ),
    "a sweep without a pause": (nested("operator.sweepSeconds", 0), "minimum: got 0, want 1"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_cannot_be_is_refused(what: str) -> None:
    values, words = REFUSALS[what]
    with pytest.raises(Refused) as refused:
        render(values)
    assert words in " ".join(str(refused.value).split())


def test_a_name_that_begins_with_a_digit_is_for_newer_clusters() -> None:
    """Those before refuse the Services, when other objects are made already."""
    with pytest.raises(Refused, match="the name 7up is none that a Service can have"):
        render({"fullnameOverride": "7up"}, flags=("--kube-version", "1.34.0"))
    assert render({"fullnameOverride": "7up"}, flags=("--kube-version", "1.36.0")).of("Service")

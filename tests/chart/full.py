"""Whatever may be said in values that is no switch, so that each branch of each template is taken."""

from __future__ import annotations

from tests.chart.chart import Values

_ENV = [{"name": "MORE", "value": "1"}]
_POD: Values = {
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "queues", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}
            ]
        }
    },
    "podLabels": {"team": "queues"},
    "podAnnotations": {"note": "of the pod"},
}
_VOLUMES: Values = {
    "extraEnv": _ENV,
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
}
_CONTAINER = {"name": "more", "image": "more:1"}
_FROM = [{"namespaceSelector": {"matchLabels": {"team": "queues"}}}]
_ANNOTATIONS = {"annotations": {"note": "1"}}
_CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "1"}},
}
FULL: Values = {
    "podSecurityContext": {"supplementalGroups": [7]},
    "containerSecurityContext": {"privileged": False},
    "edgeDefaults": {
        **_POD,
        **_VOLUMES,
        "priorityClassName": "system-cluster-critical",
        "env": {"PENSTOCK_LOG__LEVEL": "DEBUG", "PENSTOCK_HEALTH__PORT": 9161},
        "extraEnvFrom": [{"secretRef": {"name": "more"}}],
        "extraContainers": [_CONTAINER],
        "initContainers": [{**_CONTAINER, "name": "first"}],
        "limits": {"max_input_bytes": 1 << 30},
        "networkPolicy": {"from": _FROM, "peersFrom": _FROM, "egress": [{"to": _FROM}]},
        "pdb": {"minAvailable": "50%"},
        "probes": {"liveness": {"timeoutSeconds": 3}},
    },
    "edges": {
        "tmq": {
            "strategy": {"type": "Recreate"},
            "autoscaling": {
                "type": "hpa",
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
                "hpa": {"targetMemoryUtilizationPercentage": 80, "metrics": [_CPU]},
            },
            "service": {
                **_ANNOTATIONS,
                "type": "LoadBalancer",
                "labels": {"team": "queues"},
                "loadBalancerIP": "10.9.9.9",
                "loadBalancerClass": "example.org/one",
                "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "externalTrafficPolicy": "Local",
                "internalTrafficPolicy": "Cluster",
                "ipFamilyPolicy": "SingleStack",
                "ipFamilies": ["IPv4"],
                "sessionAffinity": "ClientIP",
            },
            "ports": {"tmq-document": {"nodePort": 30161, "servicePort": 61}},
            "peersService": True,
        },
        "ring": {"strategy": {"type": "OnDelete"}},
    },
    "operator": {
        **_POD,
        **_VOLUMES,
        "priorityClassName": "system-cluster-critical",
        "networkPolicy": {"egress": [{"to": _FROM}]},
    },
    "redis": {
        **_POD,
        "priorityClassName": "system-cluster-critical",
        "config": {"hz": 20},
        "persistence": {**_ANNOTATIONS, "storageClass": "fast", "whenDeleted": "Delete"},
        "service": _ANNOTATIONS,
    },
    "networkPolicy": {"metricsFrom": _FROM, "dnsTo": _FROM, "redisFrom": _FROM, "tracingTo": _FROM},
    "tracing": {"endpoint": "https://traces.example", "ratio": 0.1, "headersSecret": "traces"},
    "monitoring": {
        "queues": {"enabled": True, "max": 50, "latencies": True},
        "podMonitor": {"enabled": True, "metricRelabelings": [{"action": "labeldrop", "regex": "le"}]},
        "dashboards": {"enabled": True, **_ANNOTATIONS},
    },
    "console": {
        **_POD,
        "enabled": True,
        **_VOLUMES,
        "env": {"LEVEL": 2},
        "extraEnvFrom": [{"secretRef": {"name": "more"}}],
        "extraContainers": [_CONTAINER],
        "priorityClassName": "system-cluster-critical",
        "settings": {"origins": ["https://mq.example.org"]},
        "bindAddress": "::",
        "auth": {
            "tokens": [{"name": "ann", "role": "operate", "key": "of-ann"}],
            "existingSecret": "tokens",
            "proxy": {
                "networks": ["10.0.7.0/24"],
                "userHeader": "X-Who",
                "roleHeader": "X-Groups",
                "roles": {"sre": "admin"},
            },
        },
        "tls": {"secretName": "console-certificate", "clientCA": True},
        "service": {**_ANNOTATIONS, "type": "LoadBalancer", "nodePort": 30180, "targetPort": 4180},
        "serviceAccount": {**_ANNOTATIONS, "name": "seer"},
        "networkPolicy": {"from": _FROM, "egress": [{"to": _FROM}]},
        "pdb": {"maxUnavailable": "50%"},
        "probes": {"liveness": {"timeoutSeconds": 3}},
        "ingress": {
            **_ANNOTATIONS,
            "enabled": True,
            "className": "nginx",
            "hosts": ["console.example.org"],
            "tls": [{"hosts": ["console.example.org"], "secretName": "console"}],
        },
    },
    "analytics": {
        **_POD,
        "enabled": True,
        "timeZone": "Europe/Berlin",
        **_VOLUMES,
        "priorityClassName": "system-cluster-critical",
        "extraEnvFrom": [{"secretRef": {"name": "more"}}],
        "arguments": ["--clock-slack=60"],
        "sparkConf": {"spark.sql.shuffle.partitions": 4},
        "executors": {"enabled": True, "cpuRequest": "200m"},
        "job": {"bodies": 512, "redact": [r"\d{16}$"]},
        "networkPolicy": {"egress": [{"to": _FROM}]},
        "output": {**_ANNOTATIONS, "accessModes": ["ReadWriteMany"], "storageClass": "shared"},
    },
}

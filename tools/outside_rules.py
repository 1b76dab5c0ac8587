"""The chart's alerts for a Prometheus outside Kubernetes: python -m tools.outside_rules RULES FILE

Prometheus itself gives series `job` and `instance`: a job is a store with all that works on it, as a namespace is in a
cluster, and an instance is a process, as a pod is. Alerts that ask what only a release knows are left out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

JOBS = 'job=~"penstock.*"'  # the name of a job begins so, in the example, too
LABELS = {"namespace": "job", "pod": "instance"}
# Of groups and alerts: why there is none outside Kubernetes.
LEFT_OUT = {
    "penstock-operator": "there is no operator",
    "PenstockEdgesGone": "which edges there should be, only a release knows: a target that is gone is PenstockPodDown",
    "PenstockPodsMissing": "how many there should be, only a release knows",
    "PenstockConsoleGone": "whether there should be one, only a release knows",
    "PenstockBacklog": "how old is too old, somebody has to say",
    "PenstockAnalyticsNoReport": "whether the job should run, only a release knows",
    "PenstockStoreDiskFillsUp": "volumes are told of by the kubelet; of a disk the exporter of a machine tells",
}
WORDS = (  # in this order
    ("A pod exists, but does not answer scrapes: it is", "A process does not answer scrapes: it is down, is"),
    (" in {{ $labels.pod }}", " at {{ $labels.instance }}"),
    ("$labels.pod", "$labels.instance"),
    (": its Service sends no clients to it", ""),
    ("pods", "processes"),
    ("pod", "process"),
    ("Pod ", "Process "),
)
HEAD = """\
# Alerts for a Prometheus that scrapes edges and a console outside Kubernetes, as prometheus.yaml beside this does.
# `job` is one store with all that works on it, and begins with `penstock`; `instance` is a process. A page of
# docs/runbooks for each. Written by `make runbooks`, of the chart's rules: change those, or a copy of this.
"""


def expression(expr: str) -> str:
    expr = expr.replace('namespace!=""', JOBS)
    return re.sub(r"\b(namespace|pod)\b", lambda label: LABELS[label[1]], expr)


def words(text: str) -> str:
    for inside, outside in WORDS:
        text = text.replace(inside, outside)
    return text


def rule(inside: dict[str, Any]) -> dict[str, Any]:
    annotations = {name: words(text) for name, text in inside["annotations"].items()}
    return {**inside, "expr": expression(inside["expr"]), "annotations": annotations}


def groups(inside: str) -> list[dict[str, Any]]:
    """inside: the chart's file."""
    return [
        {
            "name": group["name"],
            "rules": [rule(each) for each in group["rules"] if each["alert"] not in LEFT_OUT],
        }
        for group in yaml.safe_load(inside)["groups"]
        if group["name"] not in LEFT_OUT
    ]


def document(inside: str) -> str:
    """The whole file."""
    return HEAD + yaml.safe_dump({"groups": groups(inside)}, sort_keys=False, width=120, allow_unicode=True)


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(document(Path(sys.argv[1]).read_text("utf-8")), "utf-8")

"""docs/operations.md, "Onto the volume of the chart's store": the helper is let in, and sees what the store sees."""

from __future__ import annotations

import yaml

from tests.chart.chart import render
from tests.docs.blocks import blocks
from tests.kubernetes.cluster import Cluster
from tests.tmq.process import ROOT

PAGE, FILE = "docs/operations.md", "docs/examples/kubernetes/restore.yaml"
POD = yaml.safe_load((ROOT / FILE).read_text())


def test_the_page_shows_it() -> None:
    assert f"# {FILE}\n{(ROOT / FILE).read_text()}```\n" in (ROOT / PAGE).read_text()


def test_it_is_the_charts_user_on_the_charts_claim() -> None:
    store = render({"fullnameOverride": "penstock"})["StatefulSet/penstock-redis"]["spec"]
    (template,) = store["volumeClaimTemplates"]
    (volume,) = POD["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == f"{template['metadata']['name']}-penstock-redis-0"
    own = store["template"]["spec"]
    for name in ("runAsUser", "runAsGroup", "fsGroup"):
        assert POD["spec"]["securityContext"][name] == own["securityContext"][name]
    (container,) = own["containers"][:1]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == template["metadata"]["name"]]
    assert POD["spec"]["containers"][0]["volumeMounts"] == [mount]
    assert POD["spec"]["containers"][0]["image"] == container["image"]


def test_it_is_let_in_where_pods_are_restricted(cluster: Cluster, restricted: str) -> None:
    told = cluster.kubectl("apply", "--namespace", restricted, "--filename", str(ROOT / FILE))
    assert "pod/restore created" in told


def test_its_commands_name_it() -> None:
    (block,) = [each for each in blocks(PAGE) if each.first.startswith("kubectl apply")]
    lines = [line for line in block.text.splitlines() if line.startswith("$ ")]
    assert len(lines) == 5
    assert FILE in lines[0]
    assert all(POD["metadata"]["name"] in line.split() or "pod/restore" in line for line in lines[1:])
    (mount,) = POD["spec"]["containers"][0]["volumeMounts"]
    assert all(mount["mountPath"] in line for line in lines if " exec " in line)

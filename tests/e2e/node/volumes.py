"""Folders of the node as pre-made volumes for claims without a class, as there is no provisioner."""

from __future__ import annotations

from typing import Any

from tests.e2e.node.kubelet import NAME
from tests.e2e.node.place import Place
from tests.kubernetes.cluster import Cluster

COUNT = 16  # no volume is used twice, as its files remain
SIZE = "20Gi"  # nominal size; the real limit is the disk
CLASS = "local"
STORAGE_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def make_volumes(cluster: Cluster, place: Place) -> None:
    cluster.apply([STORAGE_CLASS, *(_volume(place, number) for number in range(COUNT))])


def _volume(place: Place, number: int) -> dict[str, Any]:
    name = f"volume-{number}"
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NAME]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": SIZE},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": CLASS,
            "local": {"path": str(place.subfolder(name))},  # unlike hostPath, it supports fsGroup
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }

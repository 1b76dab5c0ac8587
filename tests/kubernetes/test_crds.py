"""Check that a real API server accepts and refuses the same resources as `penstock up`, with reasons.

Each document is checked by the model and by the API server, which does not store it (a dry run).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from penstock_operator.documents.crds import files
from penstock_operator.documents.redrive_spec import RedriveDocument
from penstock_operator.documents.schema import RULES
from pydantic import BaseModel, ValidationError

from services.store import QueueDocument
from services.store.model.document import API_VERSION
from services.store.model.peer import PeerDocument
from tests.kubernetes.cluster import DEFINITIONS, Cluster, CommandFailed
from tests.kubernetes.documents import (
    CHANGES,
    DOCUMENTS,
    ONLY_THE_MODEL_REFUSES,
    ONLY_THE_SERVER_REFUSES,
    Spec,
    cast,
    leading,
    mca,
    redrive,
)

NEVER_ANOTHER = "a Redrive cannot be changed: create another one with another name"
MODELS: dict[str, type[BaseModel]] = {
    "Queue": QueueDocument,
    "Peer": PeerDocument,
    "Redrive": RedriveDocument,
}


@pytest.fixture
def cluster(defined: Cluster) -> Cluster:
    return defined


def document(kind: str, spec: Spec, name: str = "one") -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def model_takes(kind: str, spec: Spec) -> bool:
    try:
        MODELS[kind].model_validate(document(kind, spec))
    except ValidationError:
        return False
    return True


def offer(cluster: Cluster, kind: str, spec: Spec) -> str:
    """Return the API server's error for a document."""
    try:
        cluster.create(document(kind, spec), dry_run=True)
    except CommandFailed as refusal:
        return refusal.said
    return ""


def test_the_files_of_the_chart_are_written_from_the_models() -> None:
    """Check that the chart has the files that `make crds` writes."""
    assert {path.name: path.read_text("utf-8") for path in DEFINITIONS.iterdir()} == files()


@pytest.mark.parametrize(("kind", "spec", "says"), DOCUMENTS)
def test_server_refuses_the_same_as_the_model(cluster: Cluster, kind: str, spec: Spec, says: str) -> None:
    said = offer(cluster, kind, spec)
    assert says in said
    assert bool(said) == bool(says), said
    assert model_takes(kind, spec) == (not says)


@pytest.mark.parametrize(("kind", "spec"), ONLY_THE_MODEL_REFUSES)
def test_only_the_model_refuses(cluster: Cluster, kind: str, spec: Spec) -> None:
    assert (offer(cluster, kind, spec), model_takes(kind, spec)) == ("", False)


@pytest.mark.parametrize(("kind", "spec"), ONLY_THE_SERVER_REFUSES)
def test_only_the_server_refuses(cluster: Cluster, kind: str, spec: Spec) -> None:
    assert offer(cluster, kind, spec)
    assert model_takes(kind, spec)


@pytest.mark.parametrize(
    ("kind", "spec"), [("Queue", {}), ("Queue", leading()), ("Peer", mca()), ("Peer", cast())]
)
def test_defaults_are_those_of_the_model(cluster: Cluster, namespace: str, kind: str, spec: Spec) -> None:
    cluster.apply([document(kind, spec)], "--namespace", namespace)
    found = cluster.get(kind, "one", namespace)["spec"]
    model = QueueDocument if kind == "Queue" else PeerDocument
    kept, plain = (model.model_validate(document(kind, one)).spec for one in (found, spec))
    assert kept == plain
    if kind == "Queue":  # a peer may have only the fields of its protocol
        said = kept.model_dump(by_alias=True, exclude_none=True, exclude_unset=True)
        assert said == plain.model_dump(by_alias=True, exclude_none=True)
    else:
        assert found == spec


@pytest.mark.parametrize(("before", "after", "says"), CHANGES)
def test_a_queue_is_never_another_one(
    cluster: Cluster, namespace: str, before: Spec, after: Spec, says: str
) -> None:
    cluster.apply([document("Queue", before)], "--namespace", namespace)
    if not says:
        cluster.apply([document("Queue", after)], "--namespace", namespace)
        return
    with pytest.raises(CommandFailed, match=f"{says}: create another Queue"):
        cluster.apply([document("Queue", after)], "--namespace", namespace)


def test_a_redrive_is_never_another_one(cluster: Cluster, namespace: str) -> None:
    cluster.apply([document("Redrive", redrive())], "--namespace", namespace)
    with pytest.raises(CommandFailed, match=NEVER_ANOTHER):
        cluster.apply([document("Redrive", redrive(rate=5))], "--namespace", namespace)


def give_status(cluster: Cluster, namespace: str, kind: str, status: dict[str, Any]) -> None:
    cluster.patch(kind, "one", {"status": status}, namespace, "status")


def ready(reason: str) -> dict[str, Any]:
    return {
        "type": "Ready",
        "status": "True",
        "reason": reason,
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def test_a_list_shows_how_queues_are(cluster: Cluster, namespace: str) -> None:
    cluster.apply([document("Queue", {}), document("Peer", mca())], "--namespace", namespace)
    counts = {"depth": 12, "inFlight": 3, "dead": 1}
    give_status(
        cluster, namespace, "queues", {"observedGeneration": 1, "conditions": [ready("Kept")], **counts}
    )
    give_status(cluster, namespace, "peers", {"observedGeneration": 1, "conditions": [ready("Known")]})
    cluster.kubectl("wait", "--for=condition=Ready", "queues/one", "peers/one", "--namespace", namespace)
    queues = cluster.kubectl("get", "queues", "--namespace", namespace)
    assert re.fullmatch(
        r"NAME +READY +REASON +DEPTH +INFLIGHT +DEAD +AGE\none +True +Kept +12 +3 +1 +\d+s\n", queues
    )
    peers = cluster.kubectl("get", "peers", "--namespace", namespace)
    assert re.fullmatch(r"NAME +READY +REASON +PROTOCOL +AGE\none +True +Known +rqp-mca +\d+s\n", peers)
    both = cluster.kubectl("get", "penstock", "--namespace", namespace, "-o", "name")
    assert both.split() == ["peer.penstock.dev/one", "queue.penstock.dev/one"]


def test_a_status_has_each_condition_once_and_is_no_part_of_the_document(
    cluster: Cluster, namespace: str
) -> None:
    cluster.apply([{**document("Queue", {}), "status": {"depth": 5}}], "--namespace", namespace)
    assert "status" not in cluster.get("queue", "one", namespace)
    with pytest.raises(CommandFailed, match="Duplicate value"):
        give_status(cluster, namespace, "queues", {"conditions": [ready("Kept"), ready("Lost")]})
    give_status(cluster, namespace, "queues", {"conditions": [ready("Kept")]})
    found = cluster.get("queue", "one", namespace)
    assert (found["status"]["conditions"], found["metadata"]["generation"]) == ([ready("Kept")], 1)


def rules_in(part: Any) -> Iterator[str]:
    """Yield the message of each rule at any depth."""
    if isinstance(part, dict):
        yield from (rule["message"] for rule in part.get(RULES, ()))
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from rules_in(inner)


@pytest.mark.parametrize("content", files().values(), ids=files())
def test_every_rule_refuses_something_here(content: str) -> None:
    said = [says for *_, says in (*DOCUMENTS, *CHANGES, (NEVER_ANOTHER,)) if says]
    rules = set(rules_in(yaml.safe_load(content)))
    assert rules
    assert [rule for rule in sorted(rules) if not any(says in rule for says in said)] == []


def undescribed(schema: dict[str, Any], path: str) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        if not field.get("description"):
            yield f"{path}.{name}"
        yield from undescribed(field, f"{path}.{name}")


@pytest.mark.parametrize("content", files().values(), ids=files())
def test_every_field_is_described(content: str) -> None:
    version = yaml.safe_load(content)["spec"]["versions"][0]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    assert [*undescribed(properties["spec"], "spec"), *undescribed(properties["status"], "status")] == []


def test_kubectl_explains_the_fields(cluster: Cluster) -> None:
    output = cluster.kubectl("explain", "queue.spec.remote.peers")
    assert "a peer to send to; none = all known peers of the protocol" in output
    assert "default: " in cluster.kubectl("explain", "peer.spec.window")
    conditions = " ".join(cluster.kubectl("explain", "redrive.status.conditions").split())
    assert "True when the redrive is complete, False while it runs or waits" in conditions

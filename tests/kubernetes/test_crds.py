"""Queue and Peer on a real API server: it takes and refuses what `penstock up` takes and refuses, and says why.

Each document is shown to the model and to the API server (`kubectl create --dry-run=server`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from penstock_operator.crds import files
from penstock_operator.schema import RULES
from pydantic import ValidationError

from services.store import QueueDocument
from services.store.document import API_VERSION
from services.store.peer import PeerDocument
from tests.kubernetes.cluster import DEFINITIONS, Cluster, CommandFailed

Spec = dict[str, Any]


def mca(**spec: Any) -> Spec:
    return {"protocol": "rqp-mca", "addresses": ["10.0.0.7"], **spec}


def cast(**spec: Any) -> Spec:
    return {"protocol": "rqp-cast", "addresses": ["10.0.0.7"], **spec}


def leading(**remote: Any) -> Spec:
    return {"remote": {"protocol": "rqp-mca", "queueId": 7, **remote}}


def ring(**spec: Any) -> Spec:
    return {"protocol": "ring", "addresses": ["10.0.0.7"], **spec}


def text(**binding: Any) -> Spec:
    return {"bindings": {"text": binding}}


def inbox(**access: Any) -> Spec:
    return {"bindings": {"ring": {"inbox": 7}}, "access": access}


NO_DURATION = "write a duration as a number and ms, s, m, h or d, as in 30s"
NO_LEVEL = "an ack level is memory, fsync or replicated:<n>"
NO_ADDRESS = "write an address as host or host:port, as in 10.0.0.7:11311"
NO_NAME = "a peer's name has 1 to 255 characters, no spaces and no commas"
NO_PATTERN = "a pattern is a tag, or the beginning of one and then '*'"
NO_TAG = "a tag has 1 or more characters above 32, none of them '*'"
NO_EDGE = "write an edge as the settings name it: tmq, rqp, ring, pubsub, sysv"
NO_NETWORK = "write an address or a network, as in 10.0.0.7, 10.0.0.0/8 or fd00::/8"
HOST_BITS = "a network has no bits set behind its length: 10.0.0.0/8, not 10.0.0.7/8"
NO_CERTIFICATE = "a name in a certificate has 1 to 255 characters"
TEXT_KNOWS_NOBODY = "access.peers and access.certificates cannot hold for bindings.text"
RING_KNOWS_NOBODY = "access.peers and access.certificates cannot hold for bindings.ring.inbox"
TEXT_SHUT_OUT = "bindings.text is of edge pubsub, which access.edges leaves out: name it there, too"
RING_SHUT_OUT = "bindings.ring.inbox is of edge ring, which access.edges leaves out: name it there, too"
NEGATIVE = "should be greater than or equal to 0"
MUCH = "should be less than or equal to 9007199254740991"
WIDE = "should be less than or equal to 4294967295"
TEXT_AWAY = "bindings.text needs domain 'main', where the text service's log is"
ROUND = "or two systems would pass a message on for ever"

GOOD_QUEUES: list[Spec] = [
    {},
    {"queueName": "Orders, of 2026 / \u0142\u00f3d\u017a", "domain": "eu_1.A-b"},
    {"maxLength": 0, "maxBytes": (1 << 53) - 1, "maxDeliveries": 0, "overflow": "dead_letter_oldest"},
    {"messageTTL": "0s", "visibilityTimeout": "1500ms", "deadLetter": {"maxLength": 0, "retention": "007d"}},
    {"messageTTL": "99999999d", "visibilityTimeout": "999999999999999ms"},
    {"ackLevel": "memory", "delivery": "at-most-once", "paused": True},
    {"ackLevel": "replicated:99", "deletionPolicy": "Retain"},
    text(subscribe=["order.*", "a", "\u0142*"], publish="all.orders"),
    text(publish="x" * 255),
    {"bindings": {"rqpMca": {"queueId": 0, "exclusive": False}, "rqpCast": {"key": 0xFFFF_FFFF}}},
    {"bindings": {"ring": {"inbox": 1, "outbox": 0xFFFF}}},
    {"bindings": {"ring": {"inbox": 7}, "rqpCast": {"key": 7, "duplicateResult": "success"}}},
    {"domain": "other", "bindings": {"text": {}}},
    leading(peers=["warehouse", "\u0142\u00f3d\u017a"], reliable=False, maxMessageBytes=1),
    {"remote": {"protocol": "rqp-cast", "key": 0}},
    {"remote": None, "bindings": {"rqpMca": {"queueId": None}}},
    leading() | text(publish="sent"),
    {
        "access": {
            "edges": ["tmq", "a-fifth"],
            "peers": ["10.0.0.7", "10.0.0.0/8", "0.0.0.0/0", "::1", "fd00::/8"],
        }
    },
    {
        "access": {
            "certificates": ["shop 7, \u0142\u00f3d\u017a", "shop.example.org", "spiffe://example.org/shop"]
        }
    },
    text(subscribe=["a"]) | {"access": {"edges": ["tmq", "pubsub"]}},
    inbox(edges=["ring"]),
    leading() | {"access": {"edges": ["tmq"], "peers": ["2001:DB8::7/128"], "certificates": ["shop"]}},
    {"bindings": {"ring": {"outbox": 7}}, "access": {"edges": ["tmq"], "peers": ["10.0.0.7/32"]}},
]
BAD_QUEUES: list[tuple[Spec, str]] = [
    *(({"maxLenght": 5}, 'unknown field "spec.maxLenght"'),),
    *(({"deadLetter": {"queue": "x"}}, 'unknown field "spec.deadLetter.queue"'),),
    *(({"remote": 5}, "must be of type object"), ({"bindings": []}, "must be of type object")),
    *(({"queueName": ""}, "at least 1"), ({"queueName": "x" * 256}, "may not be more than 255")),
    ({"queueName": "\u00e4" * 128}, "a queue's name has 1 to 255 octets"),
    *(({"domain": ""}, "at least 1"), ({"domain": "x" * 64}, "may not be more than 63")),
    ({"domain": "a}b"}, "a domain has 1 to 63 letters, digits, dots, dashes and underscores"),
    *(({name: -1}, NEGATIVE) for name in ("maxLength", "maxBytes", "maxDeliveries")),
    *(({name: 1 << 53}, MUCH) for name in ("maxLength", "maxBytes", "maxDeliveries")),
    *(({"maxLength": value}, "must be of type integer") for value in (1.5, True, "many")),
    *(({"deadLetter": {"maxLength": -1}}, NEGATIVE), ({"deadLetter": {"retention": "1y"}}, NO_DURATION)),
    *(({"messageTTL": value}, NO_DURATION) for value in ("", "30", "30 s", "-1s", "1.5s", "30S", "1m30s")),
    *(({"messageTTL": value}, NO_DURATION) for value in ("30s\n", "\u0663s", "999999999d")),
    *(({"visibilityTimeout": value}, "must be of type string") for value in (30, 1.5, True)),
    *(({"ackLevel": value}, NO_LEVEL) for value in ("", "disk", "FSYNC", "replicated:0", "replicated:1 ")),
    *(({"overflow": "drop"}, '"reject", "dead_letter_oldest"'), ({"paused": "perhaps"}, "type boolean")),
    *(({"delivery": "once"}, "at-least-once"), ({"deletionPolicy": "Keep"}, "DeleteIfEmpty")),
    *((text(subscribe=[tag]), NO_PATTERN) for tag in ("", "*", "a b", "a*b", "a\n")),
    (text(subscribe="order.*"), "must be of type array"),
    (text(subscribe=["x" * 257]), "may not be more than 256"),
    (text(subscribe=["a"] * 101), "must have at most 100 items"),
    *((text(publish=tag), NO_TAG) for tag in ("a*", "a b", " ", "a\x00")),
    (text(publish="x" * 256), "may not be more than 255"),
    ({"domain": "other"} | text(publish="a"), TEXT_AWAY),
    ({"domain": "other"} | text(subscribe=["a"]), TEXT_AWAY),
    ({"bindings": {"rqpMca": {"queueId": -1}}}, NEGATIVE),
    ({"bindings": {"rqpCast": {"key": 1 << 32}}}, WIDE),
    ({"bindings": {"rqpCast": {"duplicateResult": "maybe"}}}, '"failure", "success"'),
    ({"bindings": {"ring": {"inbox": 0}}}, "should be greater than or equal to 1"),
    ({"bindings": {"ring": {"outbox": 65536}}}, "should be less than or equal to 65535"),
    ({"bindings": {"ring": {"inbox": 7, "outbox": 7}}}, "its messages would come back for ever"),
    *((leading() | {"bindings": {"rqpMca": {"queueId": 1}}}, ROUND),),
    *((leading() | {"bindings": {"rqpCast": {"key": 1}}}, ROUND),),
    *((leading() | {"bindings": {"ring": {end: 1}}}, ROUND) for end in ("inbox", "outbox")),
    ({"remote": {}}, "spec.remote.protocol: Required value"),
    ({"remote": {"protocol": "tmq"}}, '"rqp-mca", "rqp-cast"'),
    ({"remote": {"protocol": "rqp-mca"}}, "protocol rqp-mca needs queueId, the queue's number there"),
    ({"remote": {"protocol": "rqp-cast"}}, "protocol rqp-cast needs key, the queue's number there"),
    (leading(key=7), "key is not of protocol rqp-mca: leave it out"),
    (leading(protocol="rqp-cast", key=7), "queueId is not of protocol rqp-cast: leave it out"),
    (leading(queueId=1 << 32), WIDE),
    *((leading(peers=[name]), NO_NAME) for name in ("", "a b", "a,b", "a\u2003b", "a\u00a0", "\x85")),
    *((leading(peers="warehouse"), "must be of type array"), (leading(peers=["x"] * 1001), "at most 1000")),
    (leading(peers=["x" * 256]), "may not be more than 255"),
    (leading(maxMessageBytes=0), "should be greater than or equal to 1"),
    (leading(maxMessageBytes=1 << 24), "should be less than or equal to 16777215"),
    *(({"access": {name: "tmq"}}, "must be of type array") for name in ("edges", "peers", "certificates")),
    *(({"access": {"edges": [name]}}, NO_EDGE) for name in ("", "TMQ", "a b", "7", "-a", "tmq\n")),
    *(
        ({"access": {"peers": [where]}}, NO_NETWORK)
        for where in ("", "shop", "10.0.0", "10.0.0.7/33", "::/129")
    ),
    *(
        ({"access": {"peers": [where]}}, NO_NETWORK)
        for where in ("10.0.0.0/08", "10.0.0.0/255.0.0.0", "[::1]")
    ),
    *(
        ({"access": {"peers": [where]}}, NO_NETWORK)
        for where in ("::ffff:10.0.0.7", "fe80::1%eth0", "10.0.0.7:1")
    ),
    *(({"access": {"peers": [where]}}, HOST_BITS) for where in ("10.0.0.7/8", "fd00::1/8")),
    *(({"access": {"certificates": [name]}}, NO_CERTIFICATE) for name in ("", "a\n", "\x7f")),
    *(({"access": {"certificates": ["x" * 256]}}, "may not be more than 255"),),
    *(({"access": {"edges": ["x" * 64]}}, "may not be more than 63"),),
    *(({"access": {"peers": ["1" * 50]}}, "may not be more than 49"),),
    *(
        ({"access": {"edges": ["tmq"] * 21}}, "at most 20"),
        ({"access": {"peers": ["::1"] * 201}}, "at most 200"),
    ),
    ({"access": {"users": []}}, 'unknown field "spec.access.users"'),
    (text(subscribe=["a"]) | {"access": {"peers": ["10.0.0.7"]}}, TEXT_KNOWS_NOBODY),
    (text(publish="a") | {"access": {"certificates": ["shop"]}}, TEXT_KNOWS_NOBODY),
    *((text(**binding) | {"access": {"edges": ["tmq"]}}, TEXT_SHUT_OUT) for binding in ({"publish": "a"},)),
    *(
        (text(**binding) | {"access": {"edges": ["tmq"]}}, TEXT_SHUT_OUT)
        for binding in ({"subscribe": ["a"]},)
    ),
    *((inbox(peers=["10.0.0.7"]), RING_KNOWS_NOBODY), (inbox(certificates=["shop"]), RING_KNOWS_NOBODY)),
    (inbox(edges=["tmq"]), RING_SHUT_OUT),
    (
        {"bindings": {"rqpCast": {"key": 7}}, "access": {"certificates": ["shop"]}},
        "access.certificates cannot hold for bindings.rqpCast.key: RQP/cast has no TLS",
    ),
]
GOOD_PEERS: list[Spec] = [
    mca(),
    mca(addresses=["mq.example.org:11311", "[::1]:1", "[2001:db8::7]", "a_b:65535"]),
    mca(profile="word", window=1000),
    cast(omitAddress=True, trustAddress=True, duplicateResult="success", decline=False),
    ring(addresses=["10.0.0.7", "depot.example.org:8083", "[fd00::7]:8083"]),
    {"protocol": "text", "addresses": ["text.example.org", "[::1]:7172"]},
]
BAD_PEERS: list[tuple[Spec, str]] = [
    ({"addresses": ["a"]}, "spec.protocol: Required value"),
    ({"protocol": "rqp-mca"}, "spec.addresses: Required value"),
    ({"protocol": "tmq", "addresses": ["a"]}, '"rqp-mca", "rqp-cast", "ring", "text"'),
    *((mca(addresses=[]), "at least 1 items"), (mca(addresses="10.0.0.7"), "must be of type array")),
    (mca(addresses=["a"] * 1001), "must have at most 1000 items"),
    *((mca(addresses=[where]), NO_ADDRESS) for where in ("", "a b", "a:", "a:0", "a:65536", "a:07", "::1")),
    *((mca(addresses=[where]), "must be an IPv6 address") for where in ("[]", "[10.0.0.7]", "[::g]:1")),
    (mca(addresses=["x" * 261]), "may not be more than 260"),
    *((mca(profile="nibble"), '"packed", "octet", "word"'), (mca(tls=True), 'unknown field "spec.tls"')),
    *((mca(window=0), "greater than or equal to 1"), (mca(window=1001), "less than or equal to 1000")),
    (mca(omitAddress=False), "omitAddress is of protocol rqp-cast alone: leave it out"),
    (mca(trustAddress=True), "trustAddress is of protocol rqp-cast alone: leave it out"),
    (mca(duplicateResult="failure"), "duplicateResult is of protocol rqp-cast alone: leave it out"),
    (mca(decline=True), "decline is of protocol rqp-cast alone: leave it out"),
    (cast(window=1), "window is of protocol rqp-mca alone: leave it out"),
    (cast(profile="packed"), "profile is of protocol rqp-mca alone: leave it out"),
    (ring(window=1), "window is of protocol rqp-mca alone: leave it out"),
    (
        {"protocol": "text", "addresses": ["a"], "decline": True},
        "decline is of protocol rqp-cast alone: leave it out",
    ),
    (cast(addresses=["10.0.0.8", "[::1]"]), "rqp-cast has room for IPv4 addresses only"),
]
ONLY_THE_MODEL_REFUSES = [
    # a file does not go as a resource does: nobody would carry it out
    *(("Queue", {"deletionPolicy": policy}) for policy in ("DeleteIfEmpty", "Delete")),
]
ONLY_THE_SERVER_REFUSES = [
    # the command line has its numbers and switches as text, and makes documents of them
    *(("Queue", {"maxLength": "5"}), ("Queue", {"paused": "yes"})),
    # Kubernetes knows neither zones of an address nor IPv4 inside of IPv6
    *(("Peer", mca(addresses=[where])) for where in ("[fe80::1%eth0]", "[::ffff:10.0.0.7]")),
]
CHANGES: list[tuple[Spec, Spec, str]] = [
    ({}, {"domain": "other"}, "domain cannot be changed"),
    ({"domain": "other"}, {}, "domain cannot be changed"),
    ({}, {"queueName": "two"}, "queueName cannot be changed"),
    ({"queueName": "two"}, {"queueName": "three"}, "queueName cannot be changed"),
    ({"queueName": "two"}, {}, "queueName cannot be changed"),
    ({}, {"queueName": "one"}, ""),  # as it was called before
    ({"queueName": "two"}, {"queueName": "two", "maxLength": 5}, ""),
]

DOCUMENTS = [
    *(("Queue", spec, "") for spec in GOOD_QUEUES),
    *(("Queue", spec, says) for spec, says in BAD_QUEUES),
    *(("Peer", spec, "") for spec in GOOD_PEERS),
    *(("Peer", spec, says) for spec, says in BAD_PEERS),
]


@pytest.fixture
def cluster(defined: Cluster) -> Cluster:
    return defined


def document(kind: str, spec: Spec, name: str = "one") -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def model_takes(kind: str, spec: Spec) -> bool:
    model = QueueDocument if kind == "Queue" else PeerDocument
    try:
        model.model_validate(document(kind, spec))
    except ValidationError:
        return False
    return True


def offer(cluster: Cluster, kind: str, spec: Spec) -> str:
    """What the API server says against it."""
    try:
        given = json.dumps(document(kind, spec))
        cluster.kubectl("create", "--dry-run=server", "--filename", "-", given=given)
    except CommandFailed as refusal:
        return refusal.said
    return ""


def test_the_files_of_the_chart_are_written_from_the_models() -> None:
    """`make crds` writes them."""
    assert {path.name: path.read_text("utf-8") for path in DEFINITIONS.iterdir()} == files()


@pytest.mark.parametrize(("kind", "spec", "says"), DOCUMENTS)
def test_the_server_refuses_what_the_model_refuses(
    cluster: Cluster, kind: str, spec: Spec, says: str
) -> None:
    said = offer(cluster, kind, spec)
    assert says in said
    assert bool(said) == bool(says), said
    assert model_takes(kind, spec) == (not says)


@pytest.mark.parametrize(("kind", "spec"), ONLY_THE_MODEL_REFUSES)
def test_what_only_the_model_refuses(cluster: Cluster, kind: str, spec: Spec) -> None:
    assert (offer(cluster, kind, spec), model_takes(kind, spec)) == ("", False)


@pytest.mark.parametrize(("kind", "spec"), ONLY_THE_SERVER_REFUSES)
def test_what_only_the_server_refuses(cluster: Cluster, kind: str, spec: Spec) -> None:
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
    if kind == "Queue":  # of a peer those of its protocol alone may stand there, so none does
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
    with pytest.raises(CommandFailed, match=f"{says}: declare another Queue"):
        cluster.apply([document("Queue", after)], "--namespace", namespace)


def give_status(cluster: Cluster, namespace: str, kind: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    words = ("--subresource=status", "--type=merge", "--patch", patch, "--namespace", namespace)
    cluster.kubectl("patch", kind, "one", *words)


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
    give_status(cluster, namespace, "pq", {"observedGeneration": 1, "conditions": [ready("Kept")], **counts})
    give_status(cluster, namespace, "pp", {"observedGeneration": 1, "conditions": [ready("Known")]})
    cluster.kubectl("wait", "--for=condition=Ready", "pq/one", "pp/one", "--namespace", namespace)
    queues = cluster.kubectl("get", "pq", "--namespace", namespace)
    assert re.fullmatch(
        r"NAME +READY +REASON +DEPTH +INFLIGHT +DEAD +AGE\none +True +Kept +12 +3 +1 +\d+s\n", queues
    )
    peers = cluster.kubectl("get", "pp", "--namespace", namespace)
    assert re.fullmatch(r"NAME +READY +REASON +PROTOCOL +AGE\none +True +Known +rqp-mca +\d+s\n", peers)
    both = cluster.kubectl("get", "penstock", "--namespace", namespace, "-o", "name")
    assert both.split() == ["peer.penstock.dev/one", "queue.penstock.dev/one"]


def test_a_status_has_each_condition_once_and_is_no_part_of_the_document(
    cluster: Cluster, namespace: str
) -> None:
    cluster.apply([{**document("Queue", {}), "status": {"depth": 5}}], "--namespace", namespace)
    assert "status" not in cluster.get("queue", "one", namespace)
    with pytest.raises(CommandFailed, match="Duplicate value"):
        give_status(cluster, namespace, "pq", {"conditions": [ready("Kept"), ready("Lost")]})
    give_status(cluster, namespace, "pq", {"conditions": [ready("Kept")]})
    found = cluster.get("queue", "one", namespace)
    assert (found["status"]["conditions"], found["metadata"]["generation"]) == ([ready("Kept")], 1)


def rules_in(part: Any) -> Iterator[str]:
    """What each rule says, wherever it stands."""
    if isinstance(part, dict):
        yield from (rule["message"] for rule in part.get(RULES, ()))
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from rules_in(inner)


@pytest.mark.parametrize("content", files().values(), ids=files())
def test_every_rule_refuses_something_here(content: str) -> None:
    said = [says for *_, says in (*DOCUMENTS, *CHANGES) if says]
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
    told = cluster.kubectl("explain", "queue.spec.remote.peers")
    assert "a peer that may get it; none = all that are known of that protocol" in told
    assert "if it is left out" in cluster.kubectl("explain", "peer.spec.window")

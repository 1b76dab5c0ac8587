"""Check that the API server accepts every document that the models accept, and returns it with the same meaning."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.store import QueueDocument, QueueSpec
from services.store.model.access_lists import CERTIFICATE, EDGE
from services.store.model.duration import DURATION_TEXT, MAX_NUMBER
from services.store.model.peer import Peer, PeerDocument, PeerSpec, to_peer_document
from services.store.model.rqp_binding import PEER_NAME
from services.store.model.spec import ACK_LEVEL, to_document
from services.store.model.text_binding import PATTERN, TAG
from tests.kubernetes.cluster import Cluster
from tests.one_machine import is_of_one_machine

numbers = st.one_of(st.integers(0, MAX_NUMBER), st.sampled_from([0, MAX_NUMBER]))
u32 = st.integers(0, 0xFFFF_FFFF)
groups = st.integers(1, 0xFFFF)
durations = st.from_regex(DURATION_TEXT, fullmatch=True)
duplicates = st.sampled_from(["failure", "success"])


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for any subset of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


common = {
    "maxLength": numbers,
    "maxBytes": numbers,
    "overflow": st.sampled_from(["reject", "dead_letter_oldest"]),
    "messageTTL": durations,
    "visibilityTimeout": durations.filter(lambda text: text.strip("0")[0].isdecimal()),
    "maxDeliveries": numbers,
    "deadLetter": some(maxLength=numbers, retention=durations),
    "ackLevel": st.from_regex(ACK_LEVEL, fullmatch=True),
    "delivery": st.sampled_from(["at-least-once", "at-most-once"]),
    "paused": st.booleans(),
}
clients = st.one_of(
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).filter(lambda address: address.ipv4_mapped is None).map(str),
    st.builds(
        lambda address, length: str(ip_network((address, length), strict=False)),
        st.ip_addresses(v=4),
        st.integers(0, 32),
    ),
    st.builds(
        lambda address, length: str(ip_network((address, length), strict=False)),
        st.ip_addresses(v=6).filter(lambda address: address.ipv4_mapped is None),
        st.integers(0, 128),
    ),
)
edges = st.lists(st.from_regex(EDGE, fullmatch=True), max_size=3)
anybody = {
    "peers": st.lists(clients, max_size=3),
    "certificates": st.lists(st.from_regex(CERTIFICATE, fullmatch=True), max_size=3),
}
text = some(
    subscribe=st.lists(st.from_regex(PATTERN, fullmatch=True), max_size=3),
    publish=st.from_regex(TAG, fullmatch=True),
)
bindings = some(
    text=text,
    rqpMca=some(queueId=u32, exclusive=st.booleans()),
    rqpCast=some(key=u32, duplicateResult=duplicates),
    ring=st.one_of(some(inbox=groups), some(outbox=groups)),
)
remote_common = some(
    peers=st.lists(st.from_regex(PEER_NAME, fullmatch=True), max_size=3),
    reliable=st.booleans(),
    maxMessageBytes=st.integers(1, 15 << 20),
)
remotes = st.one_of(
    st.builds(lambda rest, number: {"protocol": "rqp-mca", "queueId": number, **rest}, remote_common, u32),
    st.builds(lambda rest, number: {"protocol": "rqp-cast", "key": number, **rest}, remote_common, u32),
)
domains = st.from_regex(r"[A-Za-z0-9_.-]{1,63}", fullmatch=True)
queues = st.one_of(
    some(**common, bindings=bindings),
    some(**common, access=some(edges=edges, **anybody)),
    some(**common, bindings=some(text=text), access=some(edges=edges.map(["pubsub"].__add__))),
    some(**common, bindings=some(text=text), remote=remotes),
    some(**common, domain=domains, remote=remotes, access=some(edges=edges, **anybody)),
).map(QueueSpec.model_validate)

hosts = st.one_of(
    st.ip_addresses(v=4).filter(is_of_one_machine).map(str), st.sampled_from(["localhost", "a_b.c"])
)
ports = st.one_of(st.just(""), st.integers(1, 65535).map(":{}".format))
v4 = st.builds(str.__add__, hosts, ports)
v6 = st.builds(
    str.__add__,
    # Kubernetes does not accept IPv4-mapped IPv6 addresses
    st.ip_addresses(v=6)
    .filter(lambda address: address.ipv4_mapped is None and is_of_one_machine(address))
    .map("[{}]".format),
    ports,
)
peers = st.one_of(
    st.builds(
        lambda addresses, rest: {"protocol": "rqp-mca", "addresses": addresses, **rest},
        st.lists(st.one_of(v4, v6), min_size=1, max_size=3),
        some(profile=st.sampled_from(["packed", "octet", "word"]), window=st.integers(1, 1000)),
    ),
    st.builds(
        lambda addresses, rest: {"protocol": "rqp-cast", "addresses": addresses, **rest},
        st.lists(v4, min_size=1, max_size=3),
        some(
            omitAddress=st.booleans(),
            trustAddress=st.booleans(),
            duplicateResult=duplicates,
            decline=st.booleans(),
        ),
    ),
    st.builds(
        lambda protocol, addresses: {"protocol": protocol, "addresses": addresses},
        st.sampled_from(["ring", "text"]),
        st.lists(st.one_of(v4, v6), min_size=1, max_size=3),
    ),
).map(PeerSpec.model_validate)

few = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def handed_out(cluster: Cluster, documents: list[dict[str, Any]]) -> list[Any]:
    """Return the documents as the API server would return them."""
    return [{**one, "spec": cluster.create(one, dry_run=True)["spec"]} for one in documents]


@few
@given(specs=st.lists(queues, min_size=2, max_size=12))
def test_queues_that_the_model_takes(defined: Cluster, specs: list[QueueSpec]) -> None:
    found = handed_out(defined, [to_document(f"q{number}", spec) for number, spec in enumerate(specs)])
    assert [QueueDocument.model_validate(one).queue for one in found] == specs


@few
@given(specs=st.lists(peers, min_size=2, max_size=12))
def test_peers_that_the_model_takes(defined: Cluster, specs: list[PeerSpec]) -> None:
    named = [Peer(f"p{number}", spec) for number, spec in enumerate(specs)]
    found = handed_out(defined, [to_peer_document(peer) for peer in named])
    assert [PeerDocument.model_validate(one).spec for one in found] == specs

"""Access lists are checked by every operation of every edge (docs/operations.md, Who may use a queue)."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.store import INTERNAL_CLIENT, Client, CommitPart, Queue, QueueSpec, Source, StoreError
from services.store.model.access_lists import Access
from services.store.model.admission import Admission, admission
from services.store.model.errors import AccessDenied
from services.store.model.identities import DeliveryToken, JournalNumber, RequestId, TransactionId
from services.store.model.requests import Nothing
from services.store.pipeline.idempotent import Idempotent
from services.store.pipeline.log_verbs import LogVerbs
from services.store.pipeline.messages import Messages
from tests.store.desk import Desk, bodies, encode, until

SHOP = Client("tmq", "10.0.0.7", frozenset({"shop", "shop.example.org"}))
STRANGER = Client("tmq", "10.0.0.8", frozenset({"else"}))
ONLY_SHOP = {"peers": ["10.0.0.7"]}

edges = st.sampled_from(["tmq", "rqp", "ring"])
addresses = st.one_of(
    st.sampled_from(["", "10.0.0.7", "10.0.1.7", "fd00::7", "not an address"]),
    st.ip_addresses(v=4, network="10.0.0.0/22").map(str),
    st.ip_addresses(v=6, network="fd00::/120").map(str),
)
networks = st.one_of(
    st.sampled_from(["10.0.0.7", "10.0.0.0/24", "0.0.0.0/0", "::/0", "fd00::/124", "fd00::7"]),
    st.builds(
        lambda address, bits: str(ip_network((address, bits), strict=False)),
        st.ip_addresses(v=4, network="10.0.0.0/22"),
        st.integers(20, 32),
    ),
)
names = st.sampled_from(["shop", "depot", "spiffe://example.org/shop"])
clients = st.builds(Client, edges, addresses, st.frozensets(names, max_size=2))
accesses = st.builds(
    Access,
    edges=st.lists(edges, max_size=2),
    peers=st.lists(networks, max_size=3),
    certificates=st.lists(names, max_size=2),
)


def is_within(address: str, network: str) -> bool:
    """Compare networks bit by bit."""
    where, _, length = network.partition("/")
    try:
        asked, given_ = ip_address(address), ip_address(where)
    except ValueError:
        return False
    bits = given_.max_prefixlen - int(length or given_.max_prefixlen)
    return asked.version == given_.version and int(asked) >> bits == int(given_) >> bits


@given(accesses, clients)
def test_all_three_lists_must_match_and_empty_lists_match_all(access: Access, client: Client) -> None:
    by_edge = not access.edges or client.edge in access.edges
    by_peer = not access.peers or any(is_within(client.address, peer) for peer in access.peers)
    by_name = not access.certificates or any(name in client.names for name in access.certificates)
    problem = Admission(access).problem(client)
    assert (problem == "") == (by_edge and by_peer and by_name)
    wanted = "" if not problem else "edges" if not by_edge else "certificates" if by_peer else "peers"
    assert problem.startswith(f"access.{wanted}" if wanted else "")


@given(accesses)
def test_internal_operations_bypass_access_lists(access: Access) -> None:
    assert Admission(access).problem(INTERNAL_CLIENT) == ""
    assert (admission(access) is None) == (access == Access())


def test_refusal_names_the_list_to_check() -> None:
    only = Admission(Access(edges=("rqp",)))
    assert only.problem(SHOP) == "access.edges does not name tmq"
    only = Admission(Access(peers=("10.0.0.8",)))
    assert only.problem(SHOP) == "access.peers does not name 10.0.0.7"
    assert only.problem(Client("ring")) == "access.peers does not name a client without an address"
    only = Admission(Access(certificates=("depot",)))
    assert only.problem(SHOP) == "access.certificates does not name shop, shop.example.org"
    assert (
        only.problem(Client("tmq", "::1"))
        == "access.certificates does not name a client without a certificate"
    )


# every verb

Ask = Callable[[Any, Source, Queue, Callable[..., None]], None]
RECORD = encode(b"x")[0]
ID = b"\1" * 16
VERBS: dict[str, Ask] = {
    "publish": lambda pipe, source, queue, done: pipe.messages.publish(source, queue, [RECORD], "test", done),
    "take": lambda pipe, source, queue, done: pipe.messages.take(source, queue, 1, done),
    "count": lambda pipe, source, queue, done: pipe.messages.count(source, queue, done),
    "bury": lambda pipe, source, queue, done: pipe.messages.bury(
        source, queue, RECORD, "test", "refused", "", done
    ),
    "commit": lambda pipe, source, queue, done: pipe.idempotent.commit(
        source, "one", [CommitPart(queue, [], [RECORD], "test")], done
    ),
    **{
        f"publish once: {type(identity).__name__}": lambda pipe, source, queue, done, identity=identity: (
            pipe.idempotent.publish(source, identity, queue, RECORD, "test", done)
        )
        for identity in (
            TransactionId("two", 1000),
            JournalNumber("journal", 1),
            DeliveryToken("token", 1000),
            RequestId(ID, 1000),
        )
    },
    "pull": lambda pipe, source, queue, done: pipe.idempotent.pull(source, ID, queue, 1000, 1000, done),
}
ENDS_A_DELIVERY = {"settle", "release", "reject", "note"}  # its holder was admitted
OF_THE_LOG = {"send", "head"}  # the log is not a queue; subscribing queues must admit the text service


def test_every_operation_is_covered() -> None:
    """Check that every operation is listed here, with its check or the reason for its absence."""
    asked_for = {
        name
        for verbs in (Messages, Idempotent, LogVerbs)
        for name, verb in inspect.getmembers(verbs, inspect.isfunction)
        if not name.startswith("_") and "source" in inspect.signature(verb).parameters
    }
    asking = {name.partition(" ")[0] for name in VERBS}
    assert asked_for == asking | ENDS_A_DELIVERY | OF_THE_LOG


async def ask(desk: Desk, verb: str, client: Client, queue: Queue) -> Any:
    """Return the operation's answer."""
    results: list[Any] = []
    VERBS[verb](desk.pipe, Source(client), queue, lambda answer=None, *_: results.append(answer))
    await until(lambda: results)
    return results[0]


@pytest.mark.parametrize("verb", VERBS)
async def test_every_operation_checks_the_clients_access(desk: Desk, verb: str) -> None:
    queue = await desk.queue(access=ONLY_SHOP)
    before = await desk.stats(queue)
    denied = await ask(desk, verb, STRANGER, queue)
    assert isinstance(denied, AccessDenied)
    assert "access.peers does not name 10.0.0.8" in str(denied)
    assert desk.refusals == {"access_denied": 1}
    assert await desk.stats(queue) == before, "something was done"
    assert not isinstance(await ask(desk, verb, SHOP, queue), StoreError)
    assert desk.refusals == {"access_denied": 1}


@pytest.mark.parametrize("verb", VERBS)
async def test_administrator_is_always_admitted(desk: Desk, verb: str) -> None:
    queue = await desk.queue(access={"edges": ["missing"]})
    reply = await ask(desk, verb, INTERNAL_CLIENT, queue)
    assert not isinstance(reply, StoreError)
    assert verb != "pull" or reply is Nothing.EMPTY


async def change(desk: Desk, **spec: Any) -> None:
    await desk.store.catalogue.declare("orders", QueueSpec(**spec), "operator", replace=True)


async def test_changed_document_applies_to_open_connections(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"1", b"2")
    async with desk.another() as edge:
        edge.store.start_serving()
        handle, source = await edge.store.catalogue.find("orders"), Source(STRANGER)
        (taken,) = await edge.take(handle, 1, source=source)
        await change(desk, access=ONLY_SHOP)
        await until(lambda: handle.admission is not None)
        with pytest.raises(AccessDenied):
            await edge.take(handle, 1, source=source)
        with pytest.raises(AccessDenied):
            await edge.publish(handle, b"3", source=source)
        await edge.settle([taken])  # it may settle what it holds
        await change(desk)
        await until(lambda: handle.admission is None)
        assert bodies(await edge.take(handle, 1, source=source)) == [b"2"]


async def test_forgotten_handle_follows_its_document(desk: Desk) -> None:
    """Check this for a client that opened the queue before a new generation of the store's data."""
    await desk.queue()
    async with desk.another() as edge:
        edge.store.start_serving()
        handle = await edge.store.catalogue.find("orders")
        edge.store.catalogue.forget_all()
        await change(desk, access=ONLY_SHOP)
        await until(lambda: handle.admission is not None)
        assert isinstance(handle.refusal(STRANGER), AccessDenied)
        assert await edge.store.catalogue.find("orders") is handle


async def test_unused_handles_are_garbage_collected(desk: Desk) -> None:
    gc.freeze()  # a collection would scan all loaded modules
    try:
        for name in map(str, range(10)):
            await desk.queue(name)
            await desk.store.catalogue.find(name)
        assert len(desk.store.catalogue.known()) == 10
        desk.store.catalogue.forget_all()
        gc.collect()
        assert len(desk.store.catalogue.known()) <= 1  # the last one that was asked for
    finally:
        gc.unfreeze()

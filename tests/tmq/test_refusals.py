"""Test that refusals are counted by reason, and logged once per connection and reason (tmq.md 7.4, 7.5)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from protos import tmq
from tests.tls_hello import client_hello
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge

MISSING = tmq.mqid_of(b"missing")
TS, TE, TA = b"\x08", b"\6", b"\7"
TWICE = 2


@pytest.mark.parametrize(
    ("reason", "operation", "request_of", "reply_bytes"),
    [
        ("bad_name", "create", lambda _: tmq.encode_create(b""), 1),
        ("bad_name", "open", lambda _: tmq.encode_open(b""), 64),
        ("name_too_long", "delete", lambda _: tmq.encode_delete(bytes(256)), 1),
        ("message_too_large", "enq", lambda q: tmq.encode_enq(q, bytes(101)), 1),
        ("queue_exists", "create", lambda _: tmq.encode_create(b"q"), 1),
        ("queue_unknown", "open", lambda _: tmq.encode_open(b"missing"), 64),
        ("queue_unknown", "delete", lambda _: tmq.encode_delete(b"missing"), 1),
        ("not_owner", "delete", lambda _: tmq.encode_delete(b"theirs"), 1),
        ("mqid_not_open", "close", lambda _: tmq.encode_close(MISSING), 1),
        ("mqid_not_open", "enq", lambda _: tmq.encode_enq(MISSING, b"x"), 1),
        ("mqid_not_open", "dnq", lambda _: tmq.encode_dnq(MISSING), 4),
        ("mqid_not_open", "select", lambda _: tmq.encode_select(MISSING), 8),
        ("no_transaction", "te", lambda _: TE, 1),
        ("no_transaction", "ta", lambda _: TA, 1),
    ],
)
async def test_refused_request_fails(
    make_edge: MakeEdge, reason: str, operation: str, request_of: Callable[[bytes], bytes], reply_bytes: int
) -> None:
    # 7.4, 7.5: each refusal adds one to the counters, and the first one logs a line
    edge = await make_edge(max_message_bytes=100)
    await edge.declare("theirs", owner="cli")
    client = await edge.client()
    mqid = await client.queue(b"q")
    for _ in range(TWICE):
        await client.send(request_of(mqid))
        await client.read(reply_bytes)
    assert edge.refusals() == {reason: TWICE}
    assert await edge.requests(operation, "failed") == TWICE
    (line,) = edge.log.events("refused", reason=reason)
    assert line.__dict__["peer"] == "{}:{}".format(*client.address)
    assert line.__dict__["conn"]


async def test_refusals_have_their_own_reasons(make_edge: MakeEdge) -> None:
    # 7.4: a listener's limit must not be confused with a CREATE that is not allowed
    edge = await make_edge(create={"allowed": False})
    client = await edge.client()
    assert not await client.create(b"q")
    assert edge.refusals() == {"create_forbidden": 1}


async def test_inside_a_transaction(make_edge: MakeEdge) -> None:
    # 7.4, 5.1, 5.2, 5.5
    edge = await make_edge(transaction={"max_operations": 2})
    await edge.declare("far", domain="elsewhere")
    client = await edge.client()
    near, far = await client.queue(b"near"), await client.queue(b"far")
    assert await client.ts()
    assert not await client.ts()
    assert edge.refusals()["in_transaction"] == 1
    assert await client.enq(near, b"1")
    assert not await client.enq(far, b"2")
    assert await client.dnq(far) is None
    assert edge.refusals()["domain_mismatch"] == 2
    assert await client.enq(near, b"2")
    assert not await client.enq(near, b"3")
    assert await client.dnq(near) is None
    assert edge.refusals()["transaction_limit"] == 2
    assert await client.te()
    assert await client.drain(near) == [b"1", b"2"]


async def test_each_connection_is_listed(edge: LiveEdge, client: Client, other: Client) -> None:
    # 7.4
    for peer in (client, other, client, other):
        assert not await peer.enq(MISSING, b"x")
    assert edge.refusals() == {"mqid_not_open": 4}
    assert len(edge.log.events("refused", reason="mqid_not_open")) == TWICE


async def test_messages_are_never_logged(edge: LiveEdge, client: Client) -> None:
    # 7.4: the log has reasons and peers, never contents
    secret = b"s3cr3t-payload"
    mqid = await client.queue(b"q")
    assert not await client.enq(MISSING, secret)
    await client.put(mqid, secret)
    await client.send(tmq.encode_enq(mqid, secret) + b"\xfe" + secret)
    assert await client.rest() == b"\1"
    assert edge.log.lines
    assert not [line for line in edge.log.lines if secret.decode() in str(line.__dict__)]


async def test_tls_at_a_plain_port_has_its_own_reason(edge: LiveEdge, client: Client) -> None:
    await client.send(client_hello())
    assert await client.ended() == "fin"
    assert edge.refusals() == {"tls_at_a_plain_port": 1}

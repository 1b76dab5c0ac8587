"""Test that a message has one trace across all protocols (docs/tracing.md)."""

from __future__ import annotations

from pathlib import Path

from tests.servers import Server
from tests.tracing.collector import Collector
from tests.tracing.programs import RingProgram, TmqProgram


async def test_trace_crosses_protocols(server: Server, collector: Collector, tmp_path: Path) -> None:
    async with (
        TmqProgram(server.url, tmp_path, *collector.settings) as tmq,
        RingProgram(server.url, tmp_path, *collector.settings) as ring,
    ):
        old, other = await tmq.client(), await ring.client()
        mqid = await old.queue(b"orders")
        assert await old.enq(mqid, b"a pump")
        assert await other.pull(b"orders") == b"a pump"
        assert await other.pull(b"orders") is None  # which settles the pulled message
        put, got, settled = await collector.has("send orders", "receive orders", "settle orders")
        assert await tmq.sample("penstock_trace_spans_total", result="exported") == 1
        assert await tmq.sample("penstock_trace_spans_total", result="dropped") == 0
    assert put.trace_id == got.trace_id == settled.trace_id
    assert (put.parent_id, got.parent_id, settled.parent_id) == ("", put.span_id, got.span_id)
    assert (put.kind, got.kind, settled.kind) == ("producer", "consumer", "client")
    assert (put.service, got.service) == ("penstock-tmq", "penstock-ring")
    assert put.start_ns < put.end_ns <= got.start_ns
    assert got.start_ns < settled.start_ns < settled.end_ns == got.end_ns
    about = {
        "messaging.system": "penstock",
        "messaging.destination.name": "orders",
        "messaging.message.body.size": 6,
        "network.peer.address": "127.0.0.1",
        "penstock.domain": "main",
    }
    assert about.items() <= put.attributes.items()
    assert about.items() <= got.attributes.items()
    assert put.attributes["messaging.operation.name"] == "send"
    assert got.attributes["penstock.origin"] == put.attributes["penstock.origin"] == "tmq 127.0.0.1"
    assert got.attributes["penstock.acquired"] == 1
    assert got.attributes["penstock.outcome"] == "settled"
    assert settled.attributes["messaging.operation.type"] == "settle"
    assert not any(span.is_error for span in (put, got, settled))
    assert put.resource["service.instance.id"].startswith("tmq-")
    assert put.resource["service.instance.id"] != got.resource["service.instance.id"]

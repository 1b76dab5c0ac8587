"""Test the edge's samples in the store (docs/store.md, Samples)."""

from __future__ import annotations

from tests.live import until
from tests.tmq.conftest import MakeEdge


async def test_edge_reports_its_connections_and_queues_in_samples(make_edge: MakeEdge) -> None:
    edge = await make_edge(store={"sample_s": 0.05})
    client, other = await edge.client(), await edge.client()
    mqid = await client.queue(b"q")
    await client.put(mqid, b"12345")
    other.close()

    async def samples(kind: str) -> list[dict[str, str]]:
        link = edge.tools.get_domain("main").link
        entries = await link.call("XRANGE", "ps:{main}:samples", "-", "+")
        found = [{f[i].decode(): f[i + 1].decode() for i in range(0, len(f), 2)} for _, f in entries]
        return [sample for sample in found if sample["kind"] == kind and sample["edge"] == "tmq"]

    async def is_counted() -> bool:
        traffic = edge.listeners["document"].traffic
        seen = await samples("edge")
        sums = [
            sum(int(sample[name]) for sample in seen) for name in ("received_octets", "sent_octets", "opened")
        ]
        return sums == [traffic.received, traffic.sent, 2] and seen[-1]["connections"] == "1"

    await until(is_counted)
    (sample,) = await samples("queue")
    assert (sample["queue"], sample["in"], sample["in_octets"]) == ("q", "1", "5")
    assert {sample["process"] for sample in await samples("edge")} == {sample["process"]}

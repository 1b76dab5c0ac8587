"""Test peers over HTTP."""

from __future__ import annotations

import asyncio

from tests.console.live_console import LiveConsole

SPEC = {"protocol": "rqp-mca", "addresses": ["10.0.0.7", "mq.example.org:11311"], "window": 10}


async def test_create_read_change_delete(console: LiveConsole) -> None:
    made = await console.ask("PUT", "/peers/warehouse", SPEC)
    assert (made.status, made.headers["Location"]) == (201, "/api/v1/peers/warehouse")
    shown = await console.get("/peers/warehouse")
    assert shown.document == {"name": "warehouse", "owner": "console", "spec": SPEC, "unreadable": None}
    assert shown.headers["ETag"] == made.headers["ETag"]
    assert (await console.ask("PUT", "/peers/warehouse", SPEC)).status == 428
    assert (await console.ask("PUT", "/peers/warehouse", SPEC, headers={"If-None-Match": "*"})).status == 412
    changed = await console.ask(
        "PUT", "/peers/warehouse", {**SPEC, "window": 1}, headers={"If-Match": made.headers["ETag"]}
    )
    assert (changed.status, "Location" in changed.headers) == (200, False)
    old = {"If-Match": made.headers["ETag"]}
    assert (await console.ask("DELETE", "/peers/warehouse", headers=old)).status == 412
    assert (await console.ask("DELETE", "/peers/warehouse")).status == 428
    gone = await console.ask("DELETE", "/peers/warehouse", headers={"If-Match": changed.headers["ETag"]})
    assert (gone.status, gone.body) == (204, b"")
    assert (await console.get("/peers/warehouse")).label == "peer_unknown"
    assert (
        await console.ask("DELETE", "/peers/warehouse", headers={"If-Match": "*"})
    ).label == "peer_unknown"
    assert [line["what"] for line in console.audited(outcome="done")] == [
        "peer.put",
        "peer.put",
        "peer.delete",
    ]


async def test_only_one_of_concurrent_requests_changes(console: LiveConsole) -> None:
    """Check that only one of concurrent requests changes a peer, as the ETag is compared atomically."""
    await console.ask("PUT", "/peers/west", SPEC)
    seen = await console.etag("/peers/west")
    changes = [
        console.ask("PUT", "/peers/west", {**SPEC, "window": 20 + number}, headers=seen)
        for number in range(8)
    ]
    assert sorted(reply.status for reply in await asyncio.gather(*changes)) == [200, *[412] * 7]
    news = [console.ask("PUT", "/peers/east", {**SPEC, "window": 1 + number}) for number in range(8)]
    assert sorted({reply.status for reply in await asyncio.gather(*news)} - {428}) == [201, 412]
    seen = await console.etag("/peers/west")
    both = [
        console.ask("PUT", "/peers/west", SPEC, headers=seen),
        console.ask("DELETE", "/peers/west", headers=seen),
    ]
    changed, gone = [reply.status for reply in await asyncio.gather(*both)]
    assert (changed, gone) in ((200, 412), (412, 204))


async def test_invalid_documents(console: LiveConsole) -> None:
    reply = await console.ask("PUT", "/peers/warehouse", {"protocol": "ring", "addresses": ["a b"], "x": 1})
    assert reply.status == 422
    assert {fault["at"] for fault in reply.document["errors"]} == {"addresses.0", "x"}
    assert (await console.ask("PUT", "/peers/a%20b", SPEC)).status == 400
    assert (await console.ask("PUT", "/peers/warehouse", SPEC, headers={"If-Match": "*"})).status == 412


async def test_pages_and_an_unreadable_peer(console: LiveConsole) -> None:
    for name in ("a", "b"):
        await console.ask("PUT", f"/peers/{name}", SPEC)
    tools = console.tools
    await tools.registry.link.call(
        "HSET", tools.registry.keys.peers, "c", '{"owner": "x", "spec": {"new": 1}}'
    )
    page = await console.found("/peers?limit=2")
    rest = (await console.get(f"/peers?cursor={page['next']}")).items
    assert [peer["name"] for peer in [*page["items"], *rest]] == ["a", "b", "c"]
    assert rest[0]["spec"] is None
    assert "new" in rest[0]["unreadable"]
    shown = await console.get("/peers/c")
    reply = await console.ask("DELETE", "/peers/c", headers={"If-Match": shown.headers["ETag"]})
    assert reply.status == 204

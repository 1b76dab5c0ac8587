"""Test the details in the audit log (docs/console.md, Audit log)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from services.console.audit.detail import to_json
from services.store.model.keys import RegistryKeys
from tests.console.live_console import LiveConsole
from tests.servers import Server

ANY = {"If-Match": "*"}


async def last(console: LiveConsole) -> Any:
    """Return the details of the newest line."""
    return json.loads((await console.get("/audit?limit=1")).items[0]["detail"])


async def test_a_queue(console: LiveConsole) -> None:
    await console.ask("PUT", "/queues/orders", {"ackLevel": "memory", "maxLength": 3})
    assert await last(console) == {"made": {"ackLevel": "memory", "maxLength": 3}}
    await console.ask("PUT", "/queues/orders", {"ackLevel": "memory", "paused": True}, headers=ANY)
    assert await last(console) == {"changed": {"maxLength": [3, 0], "paused": [False, True]}}


async def test_change_of_owner(console: LiveConsole) -> None:
    await console.declare("orders")
    await console.ask("PUT", "/queues/orders", {"ackLevel": "memory"}, headers=ANY)
    assert await last(console) == {"changed": {}, "owner": ["test", "console"]}


async def test_a_peer(console: LiveConsole) -> None:
    await console.tools.initialise()
    peer = {"protocol": "ring", "addresses": ["127.0.0.1"]}
    await console.ask("PUT", "/peers/west", peer)
    assert (await last(console))["made"]["addresses"] == ["127.0.0.1"]
    await console.ask("PUT", "/peers/west", {**peer, "addresses": ["127.0.0.2"]}, headers=ANY)
    assert await last(console) == {"changed": {"addresses": [["127.0.0.1"], ["127.0.0.2"]]}}


async def test_replaced_unreadable_document(console: LiveConsole, server: Server) -> None:
    await console.declare("orders")
    kept = json.loads(server.call("HGET", RegistryKeys().queues, "orders"))
    server.call("HSET", RegistryKeys().queues, "orders", json.dumps({**kept, "spec": '{"colour": 1}'}))
    spec = {"ackLevel": "memory", "paused": True}
    assert (
        await console.ask("PUT", "/queues/orders?replaceUnreadable=true", spec, headers=ANY)
    ).status == 200
    assert await last(console) == {"replaced": spec, "owner": ["test", "console"]}
    server.call("HSET", RegistryKeys().peers, "west", '{"spec": {"colour": 1}}')
    peer = {"protocol": "ring", "addresses": ["127.0.0.1"]}
    assert (await console.ask("PUT", "/peers/west", peer, headers=ANY)).status == 200
    assert await last(console) == {"replaced": peer}


async def test_selected_dead_letters(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    ids = await console.bury(queue, *(b"%d" % number for number in range(7)))
    await console.job(await console.ask("POST", "/queues/orders/dead/purge", {"ids": ids}, headers=ANY))
    lines = [json.loads(line["detail"]) for line in (await console.get("/audit")).items]
    assert {"number": 7, "first": ids[:5]} in [line.get("selection", {}).get("ids") for line in lines]


async def test_authentication_by_token_and_proxy(server: Server) -> None:
    """Check that audit lines show whether a user is known by a token or by the proxy, as both can name a user ann."""
    token = {"name": "ann", "role": "admin", "sha256": hashlib.sha256(b"rule").hexdigest()}
    proxy = {"networks": ["127.0.0.0/8"], "roles": {"root": "admin"}}
    async with LiveConsole(server.url, tokens=[token], proxy=proxy) as console:
        headers = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "root"}
        await console.ask("PUT", "/queues/a", {"ackLevel": "memory"}, token="rule")
        await console.ask("PUT", "/queues/b", {"ackLevel": "memory"}, headers=headers)
        lines = (await console.get("/audit", token="rule")).items
        assert [(line["who"], line["auth"]) for line in lines] == [("ann", "proxy"), ("ann", "token")]
        assert [line["auth"] for line in console.audited()] == ["token", "proxy"]


def test_long_details_are_shortened_json() -> None:
    for detail in [
        {"a": "x" * 5000},
        {"a": "\udcff" * 5000, "b": 1},
        {"changed": {f"field{number}": [number, "y" * number] for number in range(200)}},
        {"a": {"b": {"c": ["d" * 600] * 10}}, "e": 9**2000},
        {"a" * 3000: 1},
        {"list": list(range(5000)), "behind": True},
    ]:
        text = to_json(detail, 1000)
        assert len(text.encode()) <= 1000
        assert json.loads(text).keys() <= {*detail, "..."}
        assert "..." in text


def test_short_details_are_complete() -> None:
    assert json.loads(to_json({"a": "é", "b": [1, None]}, 1000)) == {"a": "é", "b": [1, None]}

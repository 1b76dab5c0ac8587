"""Test addresses of clients behind the trusted proxy (docs/console.md, Access control)."""

from __future__ import annotations

from typing import Any

import pytest
from multidict import CIMultiDict

from tests.console.access.test_identity import PROXY, TOKENS
from tests.console.live_console import LiveConsole
from tests.servers import Server


async def test_last_hop_of_the_header(server: Server) -> None:
    """Check that the last hop of the header counts, as a client may forge earlier ones."""
    async with LiveConsole(server.url, proxy=PROXY) as console:
        for given, address in [
            (["10.1.2.3"], "10.1.2.3"),
            (["8.8.8.8, 10.1.2.3"], "10.1.2.3"),
            (["10.1.2.3", "8.8.8.8"], "8.8.8.8"),
            (["10.1.2.3:4711"], "10.1.2.3"),
            (["[fd00::7]:80"], "fd00::7"),
            (["fd00::7"], "fd00::7"),
            (["::ffff:10.1.2.3"], "10.1.2.3"),
            (["10.1.2.3, unknown"], "127.0.0.1"),
            (["10.1.2.3,"], "127.0.0.1"),
            (["<script>"], "127.0.0.1"),
            ([], "127.0.0.1"),
        ]:
            headers = CIMultiDict({"X-Forwarded-User": "ann", "X-Forwarded-Groups": "root"})
            for each in given:
                headers.add("X-Forwarded-For", each)
            await console.ask("PUT", "/queues/orders", {"ackLevel": "memory"}, headers=headers)
            (line,) = (await console.get("/audit?limit=1", headers=headers)).items
            assert line["address"] == address, given


async def test_address_of_requests_with_a_token(server: Server) -> None:
    """Check that the log has the address of unauthenticated requests."""
    headers = {"X-Forwarded-For": "8.8.8.8, 10.1.2.3"}
    async with LiveConsole(server.url, proxy=PROXY, tokens=TOKENS) as console:
        body = {"ackLevel": "memory"}
        assert (await console.ask("PUT", "/queues/a", body, headers=headers, token="rule")).status == 201
        assert (await console.get("/queues", headers=headers)).status == 401
        assert console.audited()[-1]["address"] == "10.1.2.3"
        assert [vars(line)["address"] for line in console.log.events("stranger")] == ["10.1.2.3"]


@pytest.mark.parametrize("proxy", [{"networks": ["10.0.0.0/8"]}, {**PROXY, "address_header": None}])
async def test_address_of_the_connection_without_a_trusted_header(
    server: Server, proxy: dict[str, Any]
) -> None:
    async with LiveConsole(server.url, proxy=proxy, tokens=TOKENS) as console:
        headers = {"X-Forwarded-For": "8.8.8.8"}
        assert (await console.ask("PUT", "/queues/a", {}, headers=headers, token="do")).status == 403
        assert console.audited()[-1]["address"] == "127.0.0.1"

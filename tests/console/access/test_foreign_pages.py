"""Test requests from pages of other origins."""

from __future__ import annotations

from services.console.access.foreign_pages import is_local
from tests.console.live_console import LiveConsole
from tests.servers import Server

SPEC = {"ackLevel": "memory"}


OWN = (
    "localhost localhost:9180 127.0.0.1 127.0.0.1:1 127.9.9.9 [::1]:80 [::1] a.localhost LOCALHOST localhost."
)
FOREIGN = "evil.example 127.0.0.1.evil.example 10.0.0.1 [::2] [ localhost.evil evil@localhost.example 0.0.0.0"


def test_only_names_of_this_machine_are_local() -> None:
    for host in OWN.split():
        assert is_local(host), host
    for host in ("", *FOREIGN.split()):
        assert not is_local(host), host


async def test_dns_rebinding(console: LiveConsole) -> None:
    for path in ["/queues", "/events", "/me"]:
        reply = await console.get(path, headers={"Host": "evil.example"})
        assert (reply.status, reply.label) == (421, "foreign_host")


async def test_any_host_is_accepted_with_tokens(server: Server) -> None:
    """Check that any Host is accepted with authentication, and Sec-Fetch-Site trusted: a proxy may change Host."""
    async with LiveConsole(server.url, proxy={"networks": ["10.0.0.0/8"]}) as console:
        for headers in ({}, {"Origin": "https://behind.example", "Sec-Fetch-Site": "same-origin"}):
            reply = await console.get("/me", headers={"Host": "mq.example.org", **headers})
            assert reply.status == 401


CHANGES = (
    ({"Origin": "https://evil.example"}, True),
    ({"Origin": "null"}, True),
    ({"Origin": "http://127.0.0.1:1"}, True),
    ({"Origin": "[", "Sec-Fetch-Site": "none"}, True),
    ({"Origin": "http://["}, True),
    ({"Sec-Fetch-Site": "cross-site"}, True),
    ({"Sec-Fetch-Site": "same-site"}, True),
    ({"Sec-Fetch-Site": "same-origin"}, False),
    ({"Sec-Fetch-Site": "none"}, False),
    ({}, False),
    ({"Sec-Fetch-Site": "nonsense"}, True),
    ({"Origin": "OWN"}, False),
    ({"Origin": "OWN", "Sec-Fetch-Site": "same-origin"}, False),
    ({"Origin": "OWN", "Sec-Fetch-Site": "cross-site"}, True),
    ({"Origin": "TLS", "Sec-Fetch-Site": "cross-site"}, True),
    ({"Origin": "TLS", "Sec-Fetch-Site": "same-site"}, True),
    ({"Origin": "https://behind.example", "Sec-Fetch-Site": "same-origin"}, True),
    ({"Origin": "https://mq.example.org", "Sec-Fetch-Site": "cross-site"}, False),
)


async def test_origins(server: Server) -> None:
    async with LiveConsole(server.url, origins=["https://mq.example.org"]) as console:
        own = {"OWN": console.base, "TLS": console.base.replace("http", "https")}
        for number, (headers, is_refused) in enumerate(CHANGES):
            sent = {name: own.get(value, value) for name, value in headers.items()}
            reply = await console.ask("PUT", f"/queues/orders{number}", SPEC, headers=sent)
            assert reply.status == (403 if is_refused else 201), headers
            if is_refused:
                assert reply.label == "foreign_origin"
            outcome = "foreign_origin" if is_refused else "done"
            assert console.audited()[-1]["outcome"] == outcome
            for path in ("/queues", "/me", "/openapi.json"):
                reply = await console.get(path, headers=sent)
                assert reply.status == (403 if is_refused else 200), (path, headers)
            assert "Access-Control-Allow-Origin" not in reply.headers

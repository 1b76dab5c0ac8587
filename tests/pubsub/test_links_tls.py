"""Links over TLS, and with certificates on both sides (pubsub.md 4.3)."""

from __future__ import annotations

import logging
from typing import Any

from tests.kit.authority import Authority
from tests.live import until
from tests.pubsub.conftest import Start
from tests.pubsub.live import LISTENERS, QUICK_LINKS, LiveEdge
from tests.pubsub.stores import NewServer, hold_the_same, linked, messages, numbered, send_all, store


def listening(tls: dict[str, Any]) -> dict[str, Any]:
    return {"listeners": {**LISTENERS, "link": {"port": 0, "serves": "links", "tls": tls}}}


def dialling(tls: dict[str, Any]) -> dict[str, Any]:
    return {"link": {**QUICK_LINKS, "dial": {"tls": tls}}}


async def carries(one: LiveEdge, two: LiveEdge) -> None:
    """Check that the link carries messages both ways."""
    await linked(one)
    await linked(two)
    large = [b"x" * 60_000, *numbered("m", 500)]
    await send_all(await one.client(), b"t", large)
    await send_all(await two.client(), b"t", numbered("back ", 500))
    await hold_the_same(one, two)
    assert sorted(await messages(one)) == sorted(await messages(two))


async def never_meets(edge: LiveEdge, text: str) -> None:
    """Check that the reason for the missing link is logged once."""
    await until(lambda: edge.log.events("link_down"))
    tries = edge.value("penstock_connections_opened_total", listener="neighbour")
    await until(lambda: edge.value("penstock_connections_opened_total", listener="neighbour") >= tries + 3)
    (event,) = edge.log.events("link_down")
    assert event.getMessage().startswith("no link to neighbour 127.0.0.1:")
    assert text in event.getMessage()
    assert event.levelno == logging.WARNING
    assert edge.value("penstock_links_following") == 0


async def test_a_link_with_certificates_on_both_sides(
    new_server: NewServer, start: Start, authority: Authority
) -> None:
    """Check that a link with certificates on both sides works: mutual TLS (4.3)."""
    one = await start(await store(new_server), **listening(authority.mutual()))
    tls = authority.dialler("two.example.org", common_name="store two")
    two = await start(await store(new_server), neighbours=[one.link_address], **dialling(tls))
    await carries(one, two)
    assert [connection.peer.certificate for connection in one.connections("link")] == ["store two"]


async def test_a_neighbour_of_another_authority_is_refused(
    new_server: NewServer, start: Start, authority: Authority, foreign_authority: Authority
) -> None:
    """Check that a neighbour of another authority is refused and the reason is logged (4.3)."""
    one = await start(await store(new_server), **listening(foreign_authority.listener()))
    neighbours = [one.link_address]
    two = await start(await store(new_server), neighbours=neighbours, **dialling(authority.dialler()))
    await never_meets(two, "CERTIFICATE_VERIFY_FAILED: unable to get local issuer certificate")
    assert two.refusals()["tls_handshake"] >= 1


async def test_neighbour_without_a_certificate_is_refused(
    new_server: NewServer, start: Start, authority: Authority, foreign_authority: Authority
) -> None:
    """Check that a neighbour without a required certificate is refused without a greeting (4.3)."""
    one = await start(await store(new_server), **listening(authority.mutual()))
    foreign = foreign_authority.dialler("two.example.org")
    tls = authority.dialler() | {"certificate": foreign["certificate"], "key": foreign["key"]}
    two = await start(await store(new_server), neighbours=[one.link_address], **dialling(tls))
    await never_meets(two, "the connection ended before both sides had greeted")
    assert one.refusals()["tls_handshake"] >= 1
    assert one.value("penstock_links_serving") == 0

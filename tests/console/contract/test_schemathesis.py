"""Test that responses to all requests which the OpenAPI document allows conform to it, without internal errors.

Examples are made from the document, also invalid ones: `PENSTOCK_SCHEMATHESIS` sets their number for each route. They
are sent with the highest role; refusals of other roles are tested in access/test_identity.py.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from services.console.openapi import PREFIX, document
from services.console.routes import ROUTES
from services.pubsub.edge import EDGE
from tests.console.live_console import LiveConsole
from tests.console.local import HEADERS
from tests.live import Live, until
from tests.servers import Server

EXAMPLES = int(os.environ.get("PENSTOCK_SCHEMATHESIS", "3"))
TIMEOUT_S = 20.0
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ENDLESS = "events.watch"


TEXT = {"listeners": {"text": {"port": 0}, "link": "off"}}


# the edge is in this process, and uses `random` while examples are made in another thread
@pytest.mark.filterwarnings("ignore:Do not use the .random. module inside strategies")
async def test_responses_conform_to_the_document(console: LiveConsole, server: Server) -> None:
    """Check existing and unknown queues, dead letters, jobs, peers and connections."""
    edge = Live(EDGE, server.url, TEXT)
    await edge.open()
    _, client = await asyncio.open_connection(*edge.places["text"])
    try:
        tried = await asyncio.to_thread(_try_all, console.base, await _known(console))
    finally:
        client.close()
        await edge.close()
    assert tried == {route.action for route in ROUTES} - {ENDLESS}
    assert (await console.get("/me")).status == 200


async def _known(console: LiveConsole) -> dict[str, str]:
    """Create resources; return their names or IDs by the beginning of the path."""
    queue = await console.declare("orders")
    peer = {"protocol": "ring", "addresses": ["127.0.0.1"]}
    assert (await console.ask("PUT", "/peers/west", peer)).status == 201
    (letter, *_) = await console.bury(queue, *(b"%d" % number for number in range(50)))
    await console.fill(queue, b"a", b"\xff", b"<b>")
    job = await console.ask("POST", "/queues/orders/dead/redrive", {"ids": ["1-1"]})

    async def connected() -> Any:
        return (await console.get("/connections")).items

    (connection,) = await until(connected)
    return {
        "/queues/{name}": "orders",
        "/peers": "west",
        "/jobs": job.document["id"],
        "/connections": connection["id"],
        "{id}": letter,
    }


def _try_all(base: str, known: dict[str, str]) -> set[str]:
    schema: Any = schemathesis.openapi.from_dict(document(ROUTES))
    schema.config.update(base_url=base)
    tried = set()
    for result in schema.get_all_operations():
        operation = result.ok()
        name = operation.definition.raw["operationId"]
        if name != ENDLESS:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                _try(operation, mode, known)
            tried.add(name)
    return tried


def _there(path: str, known: dict[str, str]) -> dict[str, str]:
    """Return path parameters of existing resources."""
    path = path.removeprefix(PREFIX)
    if path.startswith("/queues/"):
        return {"name": known["/queues/{name}"], "id": known["{id}"]}
    return dict.fromkeys(("name", "id"), known.get("/" + path.split("/")[1], ""))


def _try(operation: Any, mode: GenerationMode, known: dict[str, str]) -> None:
    there = _there(operation.path, known)

    @given(case=operation.as_strategy(generation_mode=mode), is_known=st.booleans())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def run(case: Any, is_known: bool) -> None:
        if is_known and case.path_parameters:
            case.path_parameters = {name: there[name] for name in case.path_parameters}
        case.call_and_validate(checks=CHECKS, timeout=TIMEOUT_S, headers=HEADERS)

    with suppress(Unsatisfiable):  # a route without input has no invalid input
        run()

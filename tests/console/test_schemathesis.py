"""Whatever the OpenAPI document lets in is answered as the document says, and never by a fault of ours.

Examples are made of the document, also ones that it does not let in: `PENSTOCK_SCHEMATHESIS` says how many of a route.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Any

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

from services.console.openapi import document
from services.console.table import ROUTES
from tests.console.live_console import LiveConsole

EXAMPLES = int(os.environ.get("PENSTOCK_SCHEMATHESIS", "6"))
TIMEOUT_S = 20.0
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ENDLESS = "events.watch"


async def test_nothing_is_answered_that_the_document_does_not_say(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    (identifier, *_) = await console.bury(queue, *(b"%d" % number for number in range(50)))
    await console.fill(queue, b"a", b"\xff", b"<b>")
    known = {"name": "orders", "id": identifier}
    tried = await asyncio.to_thread(_try_all, console.base, known)
    assert tried == {route.action for route in ROUTES} - {ENDLESS}
    assert (await console.get("/me")).status == 200


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


def _try(operation: Any, mode: GenerationMode, known: dict[str, str]) -> None:
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
            case.path_parameters = {name: known[name] for name in case.path_parameters}
        case.call_and_validate(checks=CHECKS, timeout=TIMEOUT_S)

    with suppress(Unsatisfiable):  # a route that is asked nothing cannot be asked anything wrong
        run()

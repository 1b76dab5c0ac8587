"""Test the OpenAPI document."""

from __future__ import annotations

import json

from services.console.contract.safe_headers import SAFE
from services.console.core.route import Condition
from services.console.openapi import PREFIX, document
from services.console.routes import ROUTES
from tests.console.live_console import LiveConsole


def test_all_routes_are_documented() -> None:
    body = document(ROUTES)
    found = {(method.upper(), path) for path, item in body["paths"].items() for method in item}
    assert found == {(route.method, f"/api/v1{route.path}") for route in ROUTES}
    ids = [operation["operationId"] for item in body["paths"].values() for operation in item.values()]
    assert len(set(ids)) == len(ids)


def test_references_resolve() -> None:
    body = document(ROUTES)
    parts = json.dumps(body).split('"$ref": "')[1:]
    led_to = [part.partition('"')[0].partition("#/components/schemas/") for part in parts]
    assert led_to
    for before, _, name in led_to:
        assert before == ""
        assert name in body["components"]["schemas"]


def test_enums_are_documented() -> None:
    parameters = document(ROUTES)["paths"]["/api/v1/queues"]["get"]["parameters"]
    (only,) = (each for each in parameters if each["name"] == "only")
    assert only["schema"] == {
        "type": "string",
        "enum": ["all", "paused", "remote", "dead", "trouble"],
        "default": "all",
    }
    assert only["description"].startswith("remote: forwarded")


def test_changes_have_preconditions() -> None:
    """Check that routes that replace or delete have a condition."""
    for route in ROUTES:
        if route.method in ("PUT", "DELETE") and route.path.startswith(("/queues", "/peers")):
            assert route.condition is not Condition.NONE, route.action


async def test_document_is_served_at_both_paths(console: LiveConsole) -> None:
    for path in ("/openapi.json", "/api/v1/openapi.json"):
        async with console.session.get(console.base + path) as response:
            assert response.status == 200
            assert json.loads(await response.read()) == json.loads(json.dumps(document(ROUTES)))
            assert SAFE.keys() <= set(response.headers)


def test_required_headers() -> None:
    """Check required headers; `live_console.check` checks all responses of these tests."""
    for method, path, status, names in [
        ("get", "/queues/{name}", "200", {"ETag"}),
        ("put", "/queues/{name}", "201", {"ETag", "Location"}),
        ("put", "/peers/{name}", "200", {"ETag"}),
        ("post", "/queues/{name}/dead/purge", "202", {"Location"}),
        ("post", "/queues/{name}/messages", "429", {"Retry-After"}),
        ("get", "/me", "503", {"Retry-After"}),
    ]:
        body = document(ROUTES)["paths"][PREFIX + path][method]["responses"][status]["headers"]
        assert {name for name, header in body.items() if header["required"]} == names

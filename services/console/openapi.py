"""Build the OpenAPI 3.1 document from the table of routes and the pydantic models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from services.console.contract.problems import CONTENT_TYPE
from services.console.contract.shape import Nothing
from services.console.contract.shapes import ProblemShape
from services.console.core.route import Condition, Route

PREFIX = "/api/v1"
REF = "#/components/schemas/{model}"
DESCRIPTION = (
    "Queues, messages, dead letters, peers and processes of a Penstock store. Times are ISO 8601 in UTC, durations "
    "milliseconds. Errors are application/problem+json with a stable `label`. Lists are paged: pass `next` of a page "
    "as `cursor` to get the following one."
)
IN_PATH = {
    "name": "name of the queue or peer, percent-encoded including `/`",
    "id": "ID from a list",
}
IF_MATCH = {
    Condition.MATCH: "ETag of the document, or *.",
    Condition.REPLACE: "ETag of the document to replace, or *; left out to create.",
    Condition.UNLESS_DRY: "ETag of the queue, or *; not needed for a dry run.",
}
Mode = Any  # "validation" or "serialization"
Refs = dict[tuple[Any, Mode], dict[str, Any]]  # model and mode -> reference to its schema
COMMON_STATUSES = (400, 403, 408, 413, 415, 417, 500, 503)
CHANGE_STATUSES = (409, 504)
RETRYABLE = (429, 503)  # with Retry-After
HEADERS: dict[str, dict[str, Any]] = {
    "ETag": {
        "description": "Entity tag of the document, for If-Match.",
        "schema": {"type": "string", "pattern": '^"[^"]+"$'},
    },
    "Location": {
        "description": "Path of the resource.",
        "schema": {"type": "string", "pattern": "^/api/v1/"},
    },
    "Content-Disposition": {
        "description": "File name.",
        "schema": {"type": "string", "pattern": "^attachment;"},
    },
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}},
}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the OpenAPI document of the routes."""
    models = _models(routes)
    found, schemas = models_json_schema([(model, mode) for model, mode in models], ref_template=REF)
    refs = Refs(found)
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = _operation(route, refs)
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {"title": "Penstock", "version": version("penstock"), "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _models(routes: Sequence[Route]) -> list[tuple[type[BaseModel], Mode]]:
    found: dict[tuple[type[BaseModel], Mode], None] = {(ProblemShape, "serialization"): None}
    for route in routes:
        if route.body is not None:
            found[route.body, "validation"] = None
        for model in route.answers.values():
            if model is not None:
                found[model, "serialization"] = None
    return list(found)


def _operation(route: Route, refs: Refs) -> dict[str, Any]:
    role = f" Requires the role `{route.role}`." if route.role is not None else ""
    result: dict[str, Any] = {
        "operationId": route.action,
        "tags": [route.tag],
        "summary": route.text.partition(". ")[0].rstrip("."),
        "description": route.text + role,
        "parameters": [*_in_path(route), *_in_query(route.query), *_in_headers(route)],
        "responses": {**_successes(route, refs), **_problems(route, refs)},
    }
    if route.body is not None:
        schema = refs[route.body, "validation"]
        result["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return result


def _parameter(
    name: str, place: str, description: str, schema: dict[str, Any], *, required: bool = False
) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "description": description, "schema": schema}


def _in_path(route: Route) -> Iterator[dict[str, Any]]:
    for name in route.names:
        yield _parameter(name, "path", IN_PATH[name], {"type": "string", "minLength": 1}, required=True)


def _in_query(model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    if model is Nothing:
        return
    schema = model.model_json_schema()
    for name, described in schema["properties"].items():
        if ref := described.pop("$ref", ""):  # an enum: inline it
            described = {**schema["$defs"][ref.rpartition("/")[2]], **described}
        described.pop("title", None)
        text = described.pop("description", "")
        yield _parameter(name, "query", text, described, required=name in schema.get("required", ()))


def _in_headers(route: Route) -> Iterator[dict[str, Any]]:
    if route.condition is not Condition.NONE:
        yield _parameter("If-Match", "header", IF_MATCH[route.condition], {"type": "string"})
    if route.condition is Condition.REPLACE:
        yield _parameter("If-None-Match", "header", "*: create only.", {"type": "string"})


def _successes(route: Route, refs: Refs) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for status, model in route.answers.items():
        described: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if model is not None:
            described["content"] = {route.media: {"schema": refs[model, "serialization"]}}
        elif status != 204:
            described["content"] = {route.media: {"schema": {}}}
        if names := route.response_headers.get(status):
            described["headers"] = {name: {"required": True, **HEADERS[name]} for name in names}
        result[str(status)] = described
    return result


def statuses(route: Route) -> list[int]:
    """Return the statuses of the problems that the route may answer with."""
    found = {*COMMON_STATUSES, *route.statuses, 401, 421}
    if "{" in route.path:
        found |= {404}
    if route.path.startswith("/queues/{"):  # its document may be unreadable
        found |= {409}
    if route.is_change:
        found |= {*CHANGE_STATUSES}
    if route.body is not None:
        found |= {422}
    if route.condition is not Condition.NONE:
        found |= {412, 428}
    return sorted(found)


def _problems(route: Route, refs: Refs) -> dict[str, Any]:
    content = {CONTENT_TYPE: {"schema": refs[ProblemShape, "serialization"]}}
    result: dict[str, Any] = {
        str(status): {"description": HTTPStatus(status).phrase, "content": content}
        for status in statuses(route)
    }
    for status in RETRYABLE:
        if str(status) in result:
            result[str(status)]["headers"] = {"Retry-After": {"required": True, **HEADERS["Retry-After"]}}
    return result

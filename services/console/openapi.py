"""The OpenAPI 3.1 document, made of the table of routes: pydantic writes JSON Schema 2020-12, which is 3.1's own."""

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
    "milliseconds. Whatever goes wrong is application/problem+json with a stable `label`. Lists come in pages: `next` "
    "of one is the `cursor` of the one behind it."
)
IN_PATH = {
    "name": "a queue's or peer's name, percent-encoded, also each `/` in it",
    "id": "as a list told it",
}
Mode = Any  # "validation" or "serialization"
Known = dict[tuple[Any, Mode], dict[str, Any]]  # a model's reference
EVERYWHERE = (400, 403, 408, 413, 415, 417, 500, 503)  # statuses of problems that each route may have
OF_STORE = (409, 504)
LATER = (429, 503)  # those that say when to come again
HEADERS: dict[str, dict[str, Any]] = {
    "ETag": {
        "description": "Of the document: what If-Match takes.",
        "schema": {"type": "string", "pattern": '^"[^"]+"$'},
    },
    "Location": {"description": "Where it is.", "schema": {"type": "string", "pattern": "^/api/v1/"}},
    "Content-Disposition": {
        "description": "A file's name.",
        "schema": {"type": "string", "pattern": "^attachment;"},
    },
    "Retry-After": {"description": "So many seconds.", "schema": {"type": "integer", "minimum": 1}},
}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    models = _models(routes)
    refs, schemas = models_json_schema([(model, mode) for model, mode in models], ref_template=REF)
    known = Known(refs)
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = _operation(route, known)
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


def _operation(route: Route, known: Known) -> dict[str, Any]:
    role = f" Needs the role `{route.role}`." if route.role is not None else ""
    told: dict[str, Any] = {
        "operationId": route.action,
        "tags": [route.tag],
        "summary": route.text.partition(". ")[0].rstrip("."),
        "description": route.text + role,
        "parameters": [*_in_path(route), *_in_query(route.query), *_in_headers(route)],
        "responses": {**_good(route, known), **_bad(route, known)},
    }
    if route.body is not None:
        schema = known[route.body, "validation"]
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return told


def _in_path(route: Route) -> Iterator[dict[str, Any]]:
    for name in route.names:
        schema = {"type": "string", "minLength": 1}
        yield {"name": name, "in": "path", "required": True, "description": IN_PATH[name], "schema": schema}


def _in_query(model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    if model is Nothing:
        return
    schema = model.model_json_schema()
    for name, described in schema["properties"].items():
        if ref := described.pop(
            "$ref", ""
        ):  # an enum: what the model keeps beside its properties has no place here
            described = {**schema["$defs"][ref.rpartition("/")[2]], **described}
        described.pop("title", None)
        told = {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": described,
        }
        yield {**told, "description": described.pop("description", "")}


def _in_headers(route: Route) -> Iterator[dict[str, Any]]:
    schema = {"type": "string"}
    if route.condition is not Condition.NONE:
        text = {
            Condition.MATCH: "The ETag of what is changed, or *.",
            Condition.REPLACE: "The ETag of what is replaced, or *; left out to make a new one.",
            Condition.UNLESS_DRY: "The queue's ETag, or *; a dry run needs none.",
        }[route.condition]
        yield {"name": "If-Match", "in": "header", "required": False, "description": text, "schema": schema}
    if route.condition is Condition.REPLACE:
        text = "*: only make it, if there is none."
        yield {
            "name": "If-None-Match",
            "in": "header",
            "required": False,
            "description": text,
            "schema": schema,
        }


def _good(route: Route, known: Known) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for status, model in route.answers.items():
        described: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if model is not None:
            described["content"] = {route.media: {"schema": known[model, "serialization"]}}
        elif status != 204:
            described["content"] = {route.media: {"schema": {}}}
        if names := route.tells.get(status):
            described["headers"] = {name: {"required": True, **HEADERS[name]} for name in names}
        told[str(status)] = described
    return told


def statuses(route: Route) -> list[int]:
    """Of the problems that the route may answer with."""
    found = {*EVERYWHERE, *route.statuses, 401, 421}
    if "{" in route.path:
        found |= {404}
    if route.path.startswith("/queues/{"):  # whose document may be unreadable
        found |= {409}
    if route.is_change:
        found |= {*OF_STORE}
    if route.body is not None:
        found |= {422}
    if route.condition is not Condition.NONE:
        found |= {412, 428}
    return sorted(found)


def _bad(route: Route, known: Known) -> dict[str, Any]:
    content = {CONTENT_TYPE: {"schema": known[ProblemShape, "serialization"]}}
    told: dict[str, Any] = {
        str(status): {"description": HTTPStatus(status).phrase, "content": content}
        for status in statuses(route)
    }
    for status in LATER:
        if str(status) in told:
            told[str(status)]["headers"] = {"Retry-After": {"required": True, **HEADERS["Retry-After"]}}
    return told

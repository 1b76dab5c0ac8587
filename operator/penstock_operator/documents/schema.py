"""A pydantic model as a structural schema, the form of OpenAPI v3 that Kubernetes takes.

Such a schema has no references, no alternatives and no word on fields that it does not name: the API server refuses
these by itself. A default is what would be written in a document; that of an object is whole, or
rules would not hold for it. A pattern becomes a CEL rule, as only a rule can say what to do instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from services.store.model import format_duration

Schema = dict[str, Any]
RULES = "x-kubernetes-validations"

KEPT = (
    *("type", "description", "enum", "required"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
)
READ_HERE = {"$ref", "$defs", "anyOf", "properties", "items", "default", "pattern", "patternErrorMessage"}
LEFT_OUT = {"title", "additionalProperties"}
ONLY_OF = "onlyOf"  # a field of one protocol: whether it was given must be seen, so it has no default here


def structural(model: type[BaseModel]) -> Schema:
    """Raises ValueError for what such a schema cannot say."""
    whole = model.model_json_schema(by_alias=True)
    return _structural(whole, whole.get("$defs", {}))


def _structural(given: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    plain = _resolved(given, definitions)
    unknown = plain.keys() - {*KEPT, *READ_HERE, *LEFT_OUT, ONLY_OF}
    if plain.get("additionalProperties"):  # false is what the API server does of itself
        unknown.add("additionalProperties")
    if unknown:
        raise ValueError(f"{given.get('title')}: a structural schema has no {', '.join(sorted(unknown))}")
    schema: Schema = {key: plain[key] for key in KEPT if key in plain}
    if "properties" in plain:
        schema["properties"] = {
            name: _structural(field, definitions) for name, field in plain["properties"].items()
        }
    schema.update(_default(plain, schema))
    if "items" in plain:
        schema["items"] = _structural(plain["items"], definitions)
    if "pattern" in plain:
        schema[RULES] = [_pattern_rule(plain)]
    return schema


def _resolved(given: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """With what a reference leads to, or the one alternative that is not null. What stands beside it is stronger."""
    beside = {key: value for key, value in given.items() if key not in ("$ref", "anyOf")}
    for inner in _inner(given, definitions):
        return {**_resolved(inner, definitions), **beside}
    return beside


def _inner(given: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in given:
        yield definitions[given["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in given:
        first, *others = (one for one in given["anyOf"] if one != {"type": "null"})
        if others:
            raise ValueError(f"{given.get('title')}: a structural schema has no anyOf")
        yield first


def filled_in(schema: Schema) -> Schema:
    """What an object is of which nothing is given."""
    return {name: field["default"] for name, field in schema["properties"].items() if "default" in field}


def _default(plain: Schema, schema: Schema) -> Schema:
    """{'default': ...}, or {} where nothing is filled in."""
    default = plain.get("default")
    if default is None:
        return {}
    if ONLY_OF in plain:
        return {"description": f"{plain['description']}; {json.dumps(default)} if it is left out"}
    if isinstance(default, dict):
        return {"default": filled_in(schema)}
    if isinstance(default, int) and plain["type"] == "string":  # the only texts that models keep as numbers
        return {"default": format_duration(default) if default else "0s"}
    return {"default": default}


def _pattern_rule(plain: Schema) -> Schema:
    """CEL reads a text as JSON writes it."""
    return {"rule": f"self.matches({json.dumps(plain['pattern'])})", "message": plain["patternErrorMessage"]}

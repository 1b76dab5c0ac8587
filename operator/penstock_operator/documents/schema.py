"""Convert a pydantic model to a structural schema, the subset of OpenAPI v3 that Kubernetes accepts.

Structural schemas have no references, alternatives or additionalProperties; the API server rejects unknown fields by
itself. Defaults of objects are complete, since CEL rules see them. A pattern becomes a CEL rule, which can have a
message.
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
ONLY_OF = "onlyOf"  # a field of one protocol; it has no default, so that rules can tell whether it was given


def structural(model: type[BaseModel]) -> Schema:
    """Return the schema of a model. Raises ValueError for what a structural schema cannot express."""
    whole = model.model_json_schema(by_alias=True)
    return _structural(whole, whole.get("$defs", {}))


def _structural(given: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    plain = _resolved(given, definitions)
    unknown = plain.keys() - {*KEPT, *READ_HERE, *LEFT_OUT, ONLY_OF}
    if plain.get("additionalProperties"):  # false is the API server's behaviour anyway
        unknown.add("additionalProperties")
    if unknown:
        raise ValueError(
            f"{given.get('title')}: a structural schema cannot have {', '.join(sorted(unknown))}"
        )
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
    """Resolve a reference or the one alternative that is not null; sibling keys take precedence."""
    siblings = {key: value for key, value in given.items() if key not in ("$ref", "anyOf")}
    for inner in _inner(given, definitions):
        return {**_resolved(inner, definitions), **siblings}
    return siblings


def _inner(given: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in given:
        yield definitions[given["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in given:
        first, *others = (one for one in given["anyOf"] if one != {"type": "null"})
        if others:
            raise ValueError(f"{given.get('title')}: a structural schema cannot have anyOf")
        yield first


def filled_in(schema: Schema) -> Schema:
    """Return an object's value when no field is given."""
    return {name: field["default"] for name, field in schema["properties"].items() if "default" in field}


def _default(plain: Schema, schema: Schema) -> Schema:
    """Return {'default': ...}, or {} without a default."""
    default = plain.get("default")
    if default is None:
        return {}
    if ONLY_OF in plain:
        return {"description": f"{plain['description']}; default: {json.dumps(default)}"}
    if isinstance(default, dict):
        return {"default": filled_in(schema)}
    # durations are the only texts that models keep as numbers
    if isinstance(default, int) and plain["type"] == "string":
        return {"default": format_duration(default) if default else "0s"}
    return {"default": default}


def _pattern_rule(plain: Schema) -> Schema:
    """Return the CEL rule for a pattern; CEL's string literals are JSON's."""
    return {"rule": f"self.matches({json.dumps(plain['pattern'])})", "message": plain["patternErrorMessage"]}

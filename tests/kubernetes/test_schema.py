"""Check that a model's structural schema keeps all its constraints or reports what it cannot express."""

from __future__ import annotations

from typing import Any

import pytest
from penstock_operator.documents.schema import RULES, structural
from pydantic import BaseModel, Field

from services.store.model.document import text_schema
from services.store.model.spec import Duration


class Spout(BaseModel):
    """Where it pours."""

    width: int = Field(3, ge=1, le=9)
    side: str | None = None


class Kettle(BaseModel):
    """Boils water."""

    spout: Spout = Spout()
    boils: Duration = Field(90_000, description="how long it takes")
    cools: Duration = 0
    lids: list[int] = Field([], max_length=2)
    maker: str


def test_references_are_gone_and_an_objects_default_is_whole() -> None:
    schema = structural(Kettle)
    assert schema["required"] == ["maker"]
    assert schema["properties"]["spout"] == {
        "type": "object",
        "description": "Where it pours.",
        "default": {"width": 3},
        "properties": {
            "width": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
            "side": {"type": "string"},  # null is expressed by leaving it out
        },
    }
    assert schema["properties"]["lids"] == {
        "type": "array",
        "default": [],
        "maxItems": 2,
        "items": {"type": "integer"},
    }


def test_durations_are_text() -> None:
    fields = structural(Kettle)["properties"]
    assert (fields["boils"]["default"], fields["cools"]["default"]) == ("90s", "0s")
    (rule,) = fields["boils"][RULES]
    assert rule["message"].endswith("as in 30s")


def test_pattern_becomes_a_rule_with_advice() -> None:
    class Named(BaseModel):
        name: str = Field("a", json_schema_extra={"pattern": r"^\w\"$", "patternErrorMessage": "write a"})

    assert structural(Named)["properties"]["name"][RULES] == [
        {"rule": r'self.matches("^\\w\\\"$")', "message": "write a"}
    ]
    assert text_schema("a|b", 1, "write a").json_schema == {
        "type": "string",
        "maxLength": 1,
        "pattern": "^(?:a|b)$",
        "patternErrorMessage": "write a",
    }


class Loose(BaseModel):
    values: dict[str, int] = {}


class Stepped(BaseModel):
    value: int = Field(0, multiple_of=2)


class Either(BaseModel):
    value: int | str = 0


@pytest.mark.parametrize("model", [Stepped, Either, Loose])
def test_inexpressible_constraint_is_an_error(model: Any) -> None:
    with pytest.raises(ValueError, match="a structural schema cannot have"):
        structural(model)

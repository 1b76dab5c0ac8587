"""What a run has written down for those after it, read again: who edits such a file is told what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ConfigDict, StringConstraints, TypeAdapter, ValidationError

NOTHING_ELSE = ConfigDict(extra="forbid")
Id = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,20}-[0-9]{1,20}$")]
OWN = "Value error, "  # what pydantic writes before our own words
T = TypeVar("T")


def _hour(text: str) -> str:
    if len(text) != len("YYYY-MM-DDTHH"):
        raise ValueError("it is not an hour such as 2026-01-31T09")
    datetime.strptime(text, "%Y-%m-%dT%H")
    return text


Hour = Annotated[str, AfterValidator(_hour)]
HourOrNone = Annotated[str, AfterValidator(lambda text: text and _hour(text))]  # '' is none


def parsed(kind: type[T], told: Any, versions: Collection[int], **known: Any) -> T:
    """A document of JSON as what it is. known: what one of before does not say. Raises ValueError, in one line."""
    if not isinstance(told, dict):
        raise ValueError("it is not a JSON object")
    version = told.get("version")
    if type(version) is not int or version not in versions:
        raise ValueError(
            f"its version is {version!r}, but this program reads {' and '.join(map(str, versions))}"
        )
    fields = {name: value for name, value in told.items() if name != "version"}
    try:
        return TypeAdapter(kind).validate_python({**known, **fields})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix(OWN)}") from None

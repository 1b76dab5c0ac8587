"""Parse the documents that earlier runs wrote; errors name what is wrong in an edited file."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ConfigDict, StringConstraints, TypeAdapter, ValidationError

NOTHING_ELSE = ConfigDict(extra="forbid")
Id = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,20}-[0-9]{1,20}$")]
OWN = "Value error, "  # pydantic's prefix of our own texts
T = TypeVar("T")


def _hour(text: str) -> str:
    if len(text) != len("YYYY-MM-DDTHH"):
        raise ValueError("it is not an hour such as 2026-01-31T09")
    datetime.strptime(text, "%Y-%m-%dT%H")
    return text


Hour = Annotated[str, AfterValidator(_hour)]
HourOrNone = Annotated[str, AfterValidator(lambda text: text and _hour(text))]  # '': no hour


def parsed(kind: type[T], told: Any, versions: Collection[int], **known: Any) -> T:
    """Parse a JSON document with a version into a dataclass.

    Args:
        kind: the class.
        told: the decoded JSON.
        versions: versions that can be read.
        known: values of fields that older versions lack.

    Raises:
        ValueError: the document is invalid; the text is one line.
    """
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

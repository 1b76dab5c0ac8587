"""Field types shared by several models, and the problem document."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from services.console.contract.shape import Shape

Time = Annotated[
    str, Field(json_schema_extra={"format": "date-time"}, description="ISO 8601 in UTC, by the store's clock")
]
Ms = Annotated[int, Field(description="milliseconds")]
Rate = Annotated[float, Field(description="per second")]
Base64 = Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})]
Cursor = Annotated[str | None, Field(description="cursor of the next page; null: this is the last page")]


class Fault(Shape):
    """A field that is wrong: its path, and why."""

    at: str
    message: str


class ProblemShape(Shape):
    """A problem document (RFC 9457). `label` is stable, `detail` is for people."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    label: str
    errors: list[Fault] | None = None

"""Paging of lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field

from services.console.contract.cursor import decode_cursor, encode_cursor
from services.console.contract.shape import Shape

MAX_ITEMS = 1000
ItemT = TypeVar("ItemT")
CursorOf = Annotated[str, Field(description="`next` of the previous page")]


class Paged(Shape):
    """The query of a list."""

    limit: Annotated[int, Field(ge=1, le=MAX_ITEMS, description="maximum number of items")] = 100
    cursor: CursorOf = ""


def page_of(
    kind: str,
    items: Sequence[ItemT],
    query: Paged,
    name: Callable[[ItemT], str],
    render: Callable[[ItemT], Any],
) -> dict[str, Any]:
    """Return the page after the cursor, of items sorted by name. Raises Problem for a bad cursor."""
    if query.cursor:
        (after,) = decode_cursor(query.cursor, kind, 1)
        items = [item for item in items if name(item) > after]
    page = items[: query.limit]
    more = encode_cursor(kind, name(page[-1])) if len(items) > len(page) else None
    return {"items": [render(item) for item in page], "next": more}

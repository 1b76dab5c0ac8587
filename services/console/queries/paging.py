"""Lists in pages: what every list is asked, and how one goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field

from services.console.contract.cursor import decode_cursor, encode_cursor
from services.console.contract.shape import Shape

MOST = 1000
ItemT = TypeVar("ItemT")
CursorOf = Annotated[str, Field(description="`next` of the page before")]


class Paged(Shape):
    limit: Annotated[int, Field(ge=1, le=MOST, description="items of a page at most")] = 100
    cursor: CursorOf = ""


def page_of(
    kind: str,
    items: Sequence[ItemT],
    query: Paged,
    name: Callable[[ItemT], str],
    tell: Callable[[ItemT], Any],
) -> dict[str, Any]:
    """The page behind the cursor, of items in the order of their names. Raises Problem for a bad cursor."""
    if query.cursor:
        (after,) = decode_cursor(query.cursor, kind, 1)
        items = [item for item in items if name(item) > after]
    page = items[: query.limit]
    more = encode_cursor(kind, name(page[-1])) if len(items) > len(page) else None
    return {"items": [tell(item) for item in page], "next": more}

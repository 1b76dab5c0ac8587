"""Detect entries that were lost before they were read.

Dead letters are not checked: they are removed one by one on purpose. A stream that is read from its beginning has lost
nothing by earlier trimming.
"""

from __future__ import annotations

from services.redis_stream.schema import Kind
from services.redis_stream.stretches import Stream, Stretch
from services.store.catalogue import BEGINNING, Page, StreamState, next_id, parse_id


class DataLoss(Exception):
    """Entries that were to be read no longer exist."""


def is_told_of(kind: Kind) -> bool:
    """Return whether losses of this kind are reported."""
    return kind is not Kind.DEAD


def lost(stream: Stream, state: StreamState | None) -> str:
    """Return what is missing after the start, as text; '' if no loss is known.

    If the stream begins after its start and has ever lost an entry, the lost one may have been in between.
    """
    if not is_told_of(stream.kind) or stream.start == BEGINNING:
        return ""
    read, start = f"{stream.key} was read up to {stream.start}", parse_id(stream.start)
    if state is None:
        return f"{read}, but no longer exists"
    if parse_id(state.last) < start:
        return f"{read}, but now ends at {state.last}: it was replaced or restored from an older state"
    if state.added > state.length and state.head > next_id(start):
        now = f"begins at {state.first}" if state.first else f"is empty up to {state.last}"
        return f"{read}, but now {now}: the entries in between were trimmed"
    return ""


def shortened(stream: Stream, state: StreamState | None) -> str:
    """Return why the end that was seen before no longer exists; '' if it does."""
    if not is_told_of(stream.kind):
        return ""
    planned = f"{stream.key} was to be read up to {stream.end}"
    if state is None:
        return f"{planned}, but no longer exists"
    if parse_id(state.last) < parse_id(stream.end):
        return f"{planned}, but now ends at {state.last}: it was replaced or restored from an older state"
    return ""


def missed(stretch: Stretch, page: Page) -> str:
    """Return what is missing before the page, or after it in a stream that became shorter; '' if nothing is."""
    stream, state = stretch.stream, page.state
    if not is_told_of(stream.kind) or (state is None and page.entries):  # the next page shows the loss
        return ""
    if why := shortened(stream, state):
        return why
    if state is not None and page.behind != BEGINNING and _is_behind(state, page):
        planned = f"{stream.key} was to be read from {page.behind} to {stretch.end}"
        there = f"begins at {state.first}" if state.first else "is empty"
        return f"{planned}, but now {there}: earlier entries were trimmed"
    return ""


def _is_behind(state: StreamState, page: Page) -> bool:
    """Return whether entries were trimmed before the page: the first id expected after `page.behind` is gone.

    A page that still contains the entries trimmed right after it was read has missed none.
    """
    if state.head <= next_id(parse_id(page.behind)):
        return False
    return not page.entries or parse_id(page.entries[0][0].decode()) >= state.head

"""Helpers of the text pub/sub tests: ways to feed a connection or a link and compare its events."""

from collections.abc import Iterable
from dataclasses import replace

from protos.pubsub import (
    Connection,
    Entries,
    Event,
    Limits,
    LinkConnection,
    LinkEvent,
    LinkLimits,
    Reason,
    Refused,
    Send,
)
from tests.protos.feeding import feed

LF, CRLF = b"\n", b"\r\n"


def events_of(data: bytes, limits: Limits | None = None) -> list[Event]:
    """Return the events of one chunk on a fresh connection."""
    return list(Connection(limits or Limits()).receive(data, 0.0))


def event_of(data: bytes, limits: Limits | None = None) -> Event:
    """Return the one event of one chunk on a fresh connection."""
    (event,) = events_of(data, limits)
    return event


def reason_of(data: bytes, limits: Limits | None = None) -> Reason:
    """Return the reason why the one line is refused."""
    event = event_of(data, limits)
    assert isinstance(event, Refused)
    return event.reason


def outcome(limits: Limits, chunks: Iterable[bytes]) -> list[Event]:
    """Return all events of a fresh connection up to and with the peer's FIN, runs merged."""
    connection = Connection(limits)
    events: list[Event] = []
    for chunk in chunks:
        events.extend(connection.receive(chunk, 0.0))
        assert connection.buffered <= limits.max_line_bytes + 1  # 1.2
    events.extend(connection.receive_eof(0.0))
    assert (connection.buffered, connection.deadline()) == (0, None)
    return merged(events)


def merged(events: Iterable[Event]) -> list[Event]:
    """Merge runs: only their boundaries may depend on the chunks."""
    result: list[Event] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, Send):
            assert event.block.count(LF) == event.count
        if isinstance(event, Send) and isinstance(last, Send) and event.eol == last.eol:
            result[-1] = Send(last.block + event.block, last.count + event.count, event.eol)
        else:
            result.append(event)
    return result


def link_events_of(data: bytes, limits: LinkLimits | None = None) -> list[LinkEvent]:
    """Return the events of one chunk on a fresh link."""
    return list(LinkConnection(limits or LinkLimits(), 0.0).receive(data, 0.0))


def link_outcome(limits: LinkLimits, chunks: Iterable[bytes]) -> tuple[list[LinkEvent], str | None]:
    """Return the outcome of `feed` with a fresh link, runs merged."""
    events, reason = feed(LinkConnection(limits, 0.0), chunks)
    return link_merged(events), reason


def link_error_of(data: bytes, limits: LinkLimits | None = None) -> str | None:
    """Return the reason of the PeerError that is the only outcome."""
    events, reason = link_outcome(limits or LinkLimits(), [data])
    assert events == []
    return reason


def link_merged(events: Iterable[LinkEvent]) -> list[LinkEvent]:
    """Merge runs as `merged` does, for entries of one origin with consecutive numbers."""
    result: list[LinkEvent] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, Entries):
            assert event.block.count(LF) == event.count
        if isinstance(event, Entries) and isinstance(last, Entries) and _goes_on(last, event):
            result[-1] = replace(last, count=last.count + event.count, block=last.block + event.block)
        else:
            result.append(event)
    return result


def _goes_on(last: Entries, event: Entries) -> bool:
    return event == replace(last, first=last.first + last.count, count=event.count, block=event.block)

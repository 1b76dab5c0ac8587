"""Find the streams of a store to read, and their ranges."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from services.redis_stream.losses import DataLoss, lost
from services.redis_stream.options import OptionError, Options
from services.redis_stream.schema import Kind
from services.redis_stream.stretches import Stream
from services.store.catalogue import DeadStream, StreamReader, StreamState, parse_id
from services.store.model import DomainKeys

MOST_LISTED = 20  # names in an error
log = logging.getLogger(__name__)

IdOf = Callable[[str], str]  # an id by a stream's key


def open_store(options: Options) -> StreamReader:
    """Connect to the store of the options."""
    return StreamReader(options.url, reply_timeout_s=options.reply_timeout_s, patience_s=options.patience_s)


def streams(
    reading: StreamReader, options: Options, start_of: IdOf | None = None, end_of: IdOf | None = None
) -> list[Stream]:
    """Return the streams to read, each from its start to its end, by default its current last entry.

    start_of, end_of: places instead of those of the options. Raises OptionError, DataLoss, StoreError.
    """
    places = start_of or options.start_of, end_of or options.end_of
    found = [_bounded(reading, options, stream, *places) for stream in known_streams(reading, options)]
    return [stream for stream in found if stream.end]


def known_streams(reading: StreamReader, options: Options) -> Iterator[Stream]:
    """Yield all streams that the options select, also empty ones, without places."""
    if options.kind is Kind.ENTRIES:
        yield Stream(options.kind, options.stream, "", "")
        return
    domains = reading.domains()
    if unknown := sorted(set(options.domains) - set(domains)):
        raise OptionError(f"option domain: unknown domain {unknown[0]!r}; known domains: {listed(domains)}")
    wanted = options.domains or domains
    if options.kind is Kind.SAMPLES:
        for domain in wanted:
            yield Stream(options.kind, DomainKeys(domain).samples, "", "", domain)
        return
    there = [dead for dead in _dead_streams(reading) if dead.domain in wanted]
    if unknown := sorted(set(options.queues) - {dead.queue for dead in there}):
        there_are = listed({readable(dead.queue) for dead in there})
        raise OptionError(f"option queue: unknown queue {unknown[0]!r}; known queues: {there_are}")
    for dead in there:
        if not options.queues or dead.queue in options.queues:
            yield Stream(options.kind, dead.key, "", "", dead.domain, readable(dead.queue), dead.qid)


def check_places(reading: StreamReader, options: Options) -> None:
    """Check the start and end given by the user: a missing stream would not be read. Raises OptionError, StoreError."""
    known = {stream.key for stream in known_streams(reading, options)}
    for name, places in (("start", options.start), ("end", options.end)):
        unknown = sorted(set(places) - known) if isinstance(places, dict) else ()
        if unknown and options.fail_on_loss:
            raise OptionError(
                f"option {name} names {unknown[0]!r}, which is not among the streams that are read: {listed(known)}; "
                "set failOnDataLoss=false to ignore it"
            )
        for key in unknown:
            log.warning("option %s names %r, which is not among the streams that are read", name, key)
    if options.kind is Kind.ENTRIES and state_of(reading, options.kind, options.stream) is None:
        log.warning("stream %r does not exist; nothing is read", options.stream)


def listed(names: Collection[str]) -> str:
    """Return some of the names as text."""
    told = ", ".join(sorted(names)[:MOST_LISTED])
    return f"{told}, ... ({len(names)})" if len(names) > MOST_LISTED else told or "none"


def _dead_streams(reading: StreamReader) -> list[DeadStream]:
    """Return the dead-letter streams of all queues; queues with damaged documents are left out with a warning."""
    found, spoilt = reading.dead_streams()
    for name in spoilt:
        log.warning(
            "queue %r is left out: its document in the catalogue is damaged; delete or declare the queue again",
            readable(name),
            extra={"action": "left_out"},
        )
    return found


def readable(name: str) -> str:
    r"""Return a queue's name as in a column: octets that are not UTF-8 become `\xNN`."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _bounded(reading: StreamReader, options: Options, stream: Stream, start_of: IdOf, end_of: IdOf) -> Stream:
    """Return the stream with its places; end '': there is nothing to read."""
    start, end = start_of(stream.key), end_of(stream.key)
    state = state_of(reading, stream.kind, stream.key)
    if why := lost(replace(stream, start=start), state):
        tell_of_loss(options, why)
    end = _earlier(end, state.last) if state is not None else ""
    if end and parse_id(end) <= parse_id(start):
        end = ""
    return replace(stream, start=start, end=end)


def state_of(reading: StreamReader, kind: Kind, key: str) -> StreamState | None:
    """Return the state of a stream, or None if it does not exist. Raises ValueError if a given key is not a stream."""
    try:
        return reading.state(key)
    except ValueError:
        if kind is Kind.ENTRIES:
            raise
        log.warning(
            "%s is not a stream and is left out: another program wrote it; delete the key",
            key,
            extra={"action": "left_out"},
        )
        return None


def _earlier(end: str, last: str) -> str:
    """Return the earlier place; end '': only the last id limits."""
    return end if end and parse_id(end) < parse_id(last) else last


def tell_of_loss(options: Options, why: str) -> None:
    """Raise DataLoss, or log it if the options tolerate losses."""
    if options.fail_on_loss:
        raise DataLoss(
            f"{why}; set failOnDataLoss=false (the job: --no-fail-on-data-loss) to read the remaining entries"
        )
    log.warning("entries are lost: %s", why)

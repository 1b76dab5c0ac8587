"""Parse a neighbour's lines; raise PeerError for what is not in the grammar (pubsub.md 4.5)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from protos.pubsub.held import HeldList
from protos.pubsub.link_events import Beat, Entries, Follow, Gap, Have, LinkEvent, Problem
from protos.pubsub.link_lines import BEAT, GAP, LISTING, OTHER_VERSION, PROBLEM
from protos.pubsub.origins import MAX_NUMBER, is_interval
from protos.types import PeerError


@dataclass(frozen=True, slots=True)
class Listing:
    """A HAVE or a FOLLOW of which more lines may come; each of them begins with the same words."""

    verb: bytes
    store: bytes
    incarnation: bytes
    list: HeldList

    def event(self, position: bytes | None) -> Have | Follow:
        """Return the event of the complete list."""
        if self.verb == b"HAVE":
            return Have(self.store, self.incarnation, self.list.held())
        return Follow(self.store, self.incarnation, self.list.held(), position)


def parse_listing(line: bytes, begun: Listing | None) -> tuple[Listing, bytes | None, bool]:
    """Add a line of HAVE or FOLLOW to the list begun, if any; return list, position, whether it continues."""
    found = LISTING.fullmatch(line)
    if found is None:
        raise PeerError("bad_version" if OTHER_VERSION.fullmatch(line) else "bad_line")
    verb, store, incarnation, text, position = found.groups()
    listing = begun or Listing(verb, store, incarnation, HeldList())
    if (listing.verb, listing.store, listing.incarnation) != (verb, store, incarnation):
        raise PeerError("unfinished_list")
    goes_on = listing.list.add(text)
    if position is not None and (goes_on or verb == b"HAVE"):
        raise PeerError("bad_line", "a position that is not at the end of a FOLLOW")
    return listing, position, goes_on


def parse_entries(head: bytes, run: bytes, max_line_bytes: int) -> Iterator[Entries]:
    """Parse ENTRY or BRIDGED lines that begin with `head`: one event for each run of consecutive numbers.

    Raises PeerError `line_too_long`, or `bad_line` for a number too large, after the entries before it.
    """
    lines = run[len(head) : -1].split(b"\n" + head)  # without their heads; no message holds an LF
    numbers, texts = zip(*[line.split(b" ", 1) for line in lines], strict=True)
    found = list(map(int, numbers))
    good = (
        _good_lines(head, lines, found, max_line_bytes) if _is_odd(run, found, max_line_bytes) else len(lines)
    )
    verb, store, incarnation, _ = head.split(b" ")
    breaks = [place for place, (low, high) in enumerate(pairwise(found[:good]), 1) if high != low + 1]
    for start, end in pairwise([0, *breaks, good] if good else []):
        block = b"SEND " + b"\nSEND ".join(texts[start:end]) + b"\n"
        yield Entries(store, incarnation, found[start], end - start, block, verb == b"BRIDGED")
    if good < len(lines):
        is_long = len(head) + len(lines[good]) > max_line_bytes
        raise PeerError("line_too_long" if is_long else "bad_line", verb.decode())


def _is_odd(run: bytes, numbers: list[int], max_line_bytes: int) -> bool:
    return len(run) > max_line_bytes or max(numbers) > MAX_NUMBER


def _good_lines(head: bytes, lines: list[bytes], numbers: list[int], max_line_bytes: int) -> int:
    """Count the lines before the first bad one."""
    for place, (line, number) in enumerate(zip(lines, numbers, strict=True)):
        if number > MAX_NUMBER or len(head) + len(line) > max_line_bytes:
            return place
    return len(lines)


def parse_line(verb: bytes, line: bytes) -> LinkEvent:
    """Parse a line that is complete in itself."""
    read = _READERS.get(verb)
    if read is None:
        raise PeerError("unknown_verb")
    event = read(line)
    if event is None:
        raise PeerError("bad_line", verb.decode())
    return event


def _parse_gap(line: bytes) -> Gap | None:
    found = GAP.fullmatch(line)
    if found is None or not is_interval(int(found[3]), int(found[4])):
        return None
    return Gap(found[1], found[2], int(found[3]), int(found[4]))


def _parse_beat(line: bytes) -> Beat | None:
    found = BEAT.fullmatch(line)
    return found and Beat(found[1])


def _parse_problem(line: bytes) -> Problem | None:
    found = PROBLEM.fullmatch(line)
    return found and Problem(found[1])


def _no_entry(line: bytes) -> None:
    """Refuse the line: a good one would have been parsed as a run of one."""


_READERS: dict[bytes, Callable[[bytes], LinkEvent | None]] = {
    b"ENTRY": _no_entry,
    b"BRIDGED": _no_entry,
    b"GAP": _parse_gap,
    b"BEAT": _parse_beat,
    b"ERROR": _parse_problem,
}

"""Random input of a neighbour, cut at random places (pubsub.md 4.5, 4.7). A failure prints how to repeat it."""

from hypothesis import given
from hypothesis import strategies as st

from protos.pubsub import (
    MAX_NUMBER,
    Beat,
    Entries,
    Follow,
    Gap,
    Have,
    LinkConnection,
    LinkEvent,
    LinkLimits,
    Problem,
    encode_beat,
    encode_entries,
    encode_follow,
    encode_gap,
    encode_have,
    encode_problem,
)
from protos.types import PeerError
from tests.protos.feeding import cuts
from tests.protos.pubsub_samples import link_merged, link_outcome

stores = st.sampled_from([b"a", b"Rome_2", b"-", b"s" * 64])
incarnations = st.sampled_from([b"0", b"z9", b"0" * 64])
numbers = st.integers(1, 20) | st.integers(1, MAX_NUMBER - 20)
positions = st.none() | st.from_regex(rb"[0-9]{1,20}-[0-9]{1,20}", fullmatch=True)
tags = st.binary(min_size=1, max_size=10).map(lambda tag: bytes(max(code, 43) for code in tag))
texts = st.binary(max_size=30).map(lambda text: bytes(max(code, 32) for code in text))
lines = st.builds(lambda tag, text: b"SEND %b %b\n" % (tag, text), tags, texts | st.just(b"SEND x y"))


def spaced(steps: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return intervals with gaps between them."""
    result, last = [], -1
    for skip, size in steps:
        result.append((last + 1 + skip, last + skip + size))
        last = result[-1][1]
    return tuple(result)


intervals = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=1, max_size=6).map(spaced)
held_lists = st.dictionaries(st.tuples(stores, incarnations), intervals, max_size=4)


def entries(store: bytes, incarnation: bytes, first: int, block: list[bytes], bridged: bool) -> Entries:
    return Entries(store, incarnation, first, len(block), b"".join(block), bridged)


events = st.one_of(
    st.builds(Have, stores, incarnations, held_lists),
    st.builds(Follow, stores, incarnations, held_lists, positions),
    st.builds(
        entries, stores, incarnations, numbers, st.lists(lines, min_size=1, max_size=12), st.booleans()
    ),
    st.builds(
        lambda store, incarnation, ends: Gap(store, incarnation, min(ends), max(ends)),
        stores,
        incarnations,
        st.tuples(numbers, numbers),
    ),
    st.builds(Beat, positions),
    st.builds(
        Problem, st.text(st.characters(min_codepoint=32, max_codepoint=127), max_size=20).map(str.encode)
    ),
)


def encode(event: LinkEvent) -> bytes:
    match event:
        case Have():
            return encode_have(event.store, event.incarnation, event.held)
        case Follow():
            return encode_follow(event.store, event.incarnation, event.held, event.position)
        case Entries():
            return encode_entries(event.store, event.incarnation, event.first, event.block, event.bridged)
        case Gap():
            return encode_gap(event.store, event.incarnation, event.first, event.last)
        case Beat():
            return encode_beat(event.position)
        case Problem():
            return encode_problem(event.reason.decode())


@given(st.lists(events, max_size=10), st.data())
def test_lines_come_back_as_they_were_encoded(sent: list[LinkEvent], data: st.DataObject) -> None:
    wire = b"".join(map(encode, sent))
    assert link_outcome(LinkLimits(), data.draw(cuts(wire))) == (link_merged(sent), None)


pieces = st.one_of(
    st.binary(max_size=10),
    events.map(encode),
    st.sampled_from(
        [b"HAVE 1 a 0 ", b"FOLLOW 1 a 0 ", b"a/0:1-2", b",", b"+3-4", b"-", b" 1-1", b"\n", b"HAVE 2 "]
    ),
    st.sampled_from([b"ENTRY a 0 %d t x\n" % number for number in (1, 2, 3, MAX_NUMBER, MAX_NUMBER + 1)]),
    st.sampled_from(
        [b"HAVE 1 a 0 a/0:1-2,\n", b"FOLLOW 1 a 0 a/0:1-2,\n", b"ENTRY a 0 4 t " + b"x" * 90 + b"\n"]
    ),
)
any_limits = st.builds(LinkLimits, st.sampled_from([16, 60, 100, 1 << 20]))


@given(any_limits, st.lists(pieces, max_size=12).map(b"".join), st.data())
def test_any_bytes_give_the_same_events_however_cut_and_at_most_a_peer_error(
    limits: LinkLimits, wire: bytes, data: st.DataObject
) -> None:
    assert link_outcome(limits, data.draw(cuts(wire))) == link_outcome(limits, [wire])


@given(any_limits, st.lists(pieces, max_size=12))
def test_a_link_that_is_not_over_always_has_a_deadline(limits: LinkLimits, chunks: list[bytes]) -> None:
    link = LinkConnection(limits, 0.0)
    try:
        for now, chunk in enumerate(chunks, 1):
            for _ in link.receive(chunk, float(now)):
                pass
            due = link.deadline()
            assert due is not None
            assert due <= now + limits.silence_s
    except PeerError:
        assert (link.buffered, link.deadline()) == (0, None)

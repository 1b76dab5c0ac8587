"""Numbers that a store holds, in lines of HAVE and FOLLOW (pubsub.md 4.5)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.pubsub import (
    MAX_INTERVALS,
    MAX_NUMBER,
    Follow,
    Have,
    Held,
    LinkConnection,
    LinkLimits,
    encode_follow,
    encode_have,
)
from protos.types import LocalError
from tests.protos.feeding import cut
from tests.protos.pubsub_samples import link_events_of, link_outcome

OURS = (b"s", b"0")
LONG_NAME = (b"s" * 64, b"0" * 64)


def held_of(text: bytes) -> Held:
    """Return the numbers held according to one line."""
    (event,) = link_events_of(b"HAVE 1 s 0 " + text + b"\n")
    assert isinstance(event, Have)
    return event.held


def error_of(*pieces: bytes) -> str | None:
    return link_outcome(LinkLimits(), [b"".join(b"HAVE 1 s 0 " + piece + b"\n" for piece in pieces)])[1]


@pytest.mark.parametrize(
    ("text", "intervals"),
    [
        (b"1-1", ((1, 1),)),
        (b"5-6+1-2", ((1, 2), (5, 6))),  # in any order
        (b"1-2+3-4", ((1, 4),)),  # they touch
        (b"1-10+2-3+5-12", ((1, 12),)),  # they overlap
        (b"1-2+1-2", ((1, 2),)),
        (b"1-2,s/0:4-5,s/0:3-3", ((1, 5),)),  # an item may appear more than once
        (b"1-9007199254740991", ((1, MAX_NUMBER),)),
    ],
)
def test_4_5_intervals_add_up(text: bytes, intervals: tuple) -> None:
    assert held_of(b"s/0:" + text) == {OURS: intervals}


@pytest.mark.parametrize(
    "text",
    [
        b"--",
        b"-,",
        b",",
        b"s",
        b"s/0",
        b"s/0:",
        b"s/0:1",
        b"s/0:1-",
        b"s/0:-1",
        b"s/0:1-2+",
        b"s/0:1-2,,",
        b",s/0:1-2",
        b"s/0:1-2,-",
        b"-,s/0:1-2",
        b"s/0:2-1",
        b"s/0:0-1",
        b"s/0:01-2",
        b"s/0:1-9007199254740992",
        b"s/0:1-99999999999999999",
        b"s/A:1-2",
        b"/0:1-2",
        b"s/:1-2",
        b"s/0/1:1-2",
        b"s" * 65 + b"/0:1-2",
        b"s/0:1-2\r",
    ],
)
def test_4_7_illegal_lists(text: bytes) -> None:
    assert error_of(text) == "bad_held"


def test_4_5_a_store_may_be_called_dash() -> None:
    assert held_of(b"-/0:1-2") == {(b"-", b"0"): ((1, 2),)}


# --- continued lists


def test_4_5_a_list_goes_on_in_the_next_line() -> None:
    have = b"HAVE 1 s 0 s/0:1-2,\nHAVE 1 s 0 t/1:5-5,\nHAVE 1 s 0 s/0:3-4+9-9\n"
    wanted = {OURS: ((1, 4), (9, 9)), (b"t", b"1"): ((5, 5),)}
    follow = have.replace(b"HAVE", b"FOLLOW")[:-1] + b" 17-3\n"
    events = [Have(b"s", b"0", wanted), Follow(b"s", b"0", wanted, b"17-3")]
    assert link_events_of(have + follow) == events
    for place in range(len(have + follow)):
        assert link_outcome(LinkLimits(), cut(have + follow, [place])) == (events, None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"BEAT", "unfinished_list"),
        (b"ENTRY s 0 1 a b", "unfinished_list"),
        (b"ENTRY", "unfinished_list"),
        (b"FOLLOW 1 s 0 s/0:3-4", "unfinished_list"),
        (b"HAVE 1 t 0 s/0:3-4", "unfinished_list"),
        (b"HAVE 1 s 1 s/0:3-4", "unfinished_list"),
        (b"HAVE 2 s 0 s/0:3-4", "bad_version"),
        (b"HAVE 1 s 0 -", "bad_held"),
        (b"nonsense", "unfinished_list"),
    ],
)
def test_4_7_nothing_else_may_stand_in_a_list(line: bytes, reason: str) -> None:
    assert link_outcome(LinkLimits(), [b"HAVE 1 s 0 s/0:1-2,\n" + line + b"\n"]) == ([], reason)


def test_4_5_a_list_has_at_most_a_thousand_lines() -> None:
    piece = b"s/0:1-2"
    assert error_of(*[piece + b","] * 999, piece) is None
    assert error_of(*[piece + b","] * 1_000, piece) == "held_too_long"


def test_4_5_a_list_has_at_most_a_hundred_thousand_intervals() -> None:
    piece = b"s/0:" + b"+".join([b"1-2"] * 10_000)
    assert error_of(*[piece + b","] * 9, piece) is None
    assert error_of(*[piece + b","] * 10, b"s/0:1-2") == "held_too_long"


def test_4_5_octets_of_an_unfinished_list_are_counted() -> None:
    link = LinkConnection(LinkLimits(), 0.0)
    piece = b"s/0:" + b"+".join([b"1-2"] * 1_000) + b","
    for lines in range(1, 10):
        assert list(link.receive(b"HAVE 1 s 0 " + piece + b"\n", 0.0)) == []
        assert link.buffered > lines * 1_000 * 100  # the size of an interval in memory, not on the wire
    assert len(list(link.receive(b"HAVE 1 s 0 s/0:1-2\n", 0.0))) == 1
    assert link.buffered == 0


# --- encoding


@pytest.mark.parametrize("origins", [1, 900], ids=["long items", "many items"])
def test_4_5_a_line_of_a_list_stays_below_64_kib(origins: int) -> None:
    each = MAX_INTERVALS // origins
    intervals = tuple((MAX_NUMBER - 3 * place - 1, MAX_NUMBER - 3 * place) for place in reversed(range(each)))
    held = {(b"s%d" % number, b"0" * 64): intervals for number in range(origins)}
    wire = encode_follow(*LONG_NAME, held, b"1" * 20 + b"-" + b"2" * 20)
    assert max(map(len, wire.splitlines())) <= 60 * 1024 + 200
    assert wire.count(b"\n") > 1
    assert link_events_of(wire) == [Follow(*LONG_NAME, held, b"1" * 20 + b"-" + b"2" * 20)]


def test_4_5_encoding_an_illegal_list_is_a_local_error() -> None:
    intervals = tuple((place, place) for place in range(1, 2 * MAX_INTERVALS + 3, 2))
    with pytest.raises(LocalError):
        encode_have(b"s", b"0", {OURS: intervals})


def test_4_5_an_origin_of_which_nothing_is_held_is_not_named() -> None:
    assert encode_have(b"s", b"0", {OURS: (), LONG_NAME: ()}) == b"HAVE 1 s 0 -\n"


numbers = st.integers(1, 60) | st.integers(1, MAX_NUMBER)
raw = st.lists(st.tuples(numbers, numbers).map(lambda pair: (min(pair), max(pair))), min_size=1, max_size=12)
origins = st.tuples(st.sampled_from([b"a", b"B", b"-", b"."]), st.sampled_from([b"0", b"zz"]))


@given(st.dictionaries(origins, raw, max_size=5))
def test_4_5_the_same_numbers_come_out_sorted_and_merged(said: dict) -> None:
    (event,) = link_events_of(encode_have(b"s", b"0", said))
    assert event.held.keys() == said.keys()
    for origin, intervals in said.items():
        found = event.held[origin]
        assert all(low[1] + 1 < high[0] for low, high in pairwise(found))
        for ends in intervals:
            assert any(low <= ends[0] and ends[1] <= high for low, high in found)
        for low, high in found:  # no number that was not listed
            assert any(low == first for first, _ in intervals)
            assert any(high == last for _, last in intervals)
            small = range(low, min(high, 200) + 1)
            assert all(any(first <= number <= last for first, last in intervals) for number in small)

"""Lines between neighbours (pubsub.md 4.5), and errors that end a link (4.7)."""

import pytest

from protos.pubsub import (
    MAX_NUMBER,
    MAX_RUN,
    Beat,
    Entries,
    Follow,
    Gap,
    Have,
    LinkLimits,
    Problem,
    encode_beat,
    encode_entries,
    encode_follow,
    encode_gap,
    encode_have,
    encode_problem,
)
from protos.types import LocalError
from tests.protos.feeding import cut, one_by_one
from tests.protos.pubsub_samples import link_error_of, link_events_of, link_outcome

HELD = {(b"paris", b"a1"): ((1, 100), (105, 200)), (b"Rome_2", b"z"): ((7, 7),)}
HELD_TEXT = b"paris/a1:1-100+105-200,Rome_2/z:7-7"
BLOCK = b"SEND a.b hello world\nSEND c \nSEND c ENTRY paris a1 8 x\n"
ENTRY_LINES = (
    b"ENTRY paris a1 7 a.b hello world\nENTRY paris a1 8 c \nENTRY paris a1 9 c ENTRY paris a1 8 x\n"
)
BRIDGED = Entries(b"paris", b"a1", 7, 2, b"SEND a b\nSEND a \n", True)
# Every kind of line as in 4.5, with its meaning.
LINES = [
    (b"HAVE 1 paris a1 " + HELD_TEXT + b"\n", Have(b"paris", b"a1", HELD)),
    (b"HAVE 1 paris a1 -\n", Have(b"paris", b"a1", {})),
    (b"FOLLOW 1 paris a1 " + HELD_TEXT + b"\n", Follow(b"paris", b"a1", HELD, None)),
    (b"FOLLOW 1 - 0 - 17-0\n", Follow(b"-", b"0", {}, b"17-0")),
    (ENTRY_LINES, Entries(b"paris", b"a1", 7, 3, BLOCK, False)),
    (b"BRIDGED paris a1 7 a b\nBRIDGED paris a1 8 a \n", BRIDGED),
    (b"GAP paris a1 10 9007199254740991\n", Gap(b"paris", b"a1", 10, MAX_NUMBER)),
    (b"BEAT\n", Beat(None)),
    (b"BEAT 1763755200000-12\n", Beat(b"1763755200000-12")),
    (b"ERROR we are the same store\n", Problem(b"we are the same store")),
]
CONTINUED = b"HAVE 1 s 0 s/0:1-2,\nHAVE 1 s 0 s/0:3-4\n"
STREAM = b"".join(wire for wire, _ in LINES)
TIGHT = LinkLimits(max_line_bytes=80)


# --- each line, both ways


@pytest.mark.parametrize(("wire", "event"), LINES)
def test_4_5_line_is_decoded(wire: bytes, event: object) -> None:
    assert link_events_of(wire) == [event]


def test_4_5_each_line_is_encoded_so() -> None:
    assert [
        encode_have(b"paris", b"a1", HELD),
        encode_have(b"paris", b"a1", {}),
        encode_follow(b"paris", b"a1", HELD),
        encode_follow(b"-", b"0", {}, b"17-0"),
        encode_entries(b"paris", b"a1", 7, BLOCK),
        encode_entries(b"paris", b"a1", 7, BRIDGED.block, bridged=True),
        encode_gap(b"paris", b"a1", 10, MAX_NUMBER),
        encode_beat(),
        encode_beat(b"1763755200000-12"),
        encode_problem("we are the same store"),
    ] == [wire for wire, _ in LINES]


def test_4_5_a_reason_is_escaped_rather_than_derailing_the_neighbour() -> None:
    assert encode_problem("two\nlines") == b"ERROR two\\nlines\n"
    assert link_events_of(encode_problem("я\ud800")) != []


def test_4_5_the_cut_of_the_bytes_does_not_matter() -> None:
    whole = link_outcome(LinkLimits(), [STREAM])
    assert whole == ([event for _, event in LINES], None)
    assert link_outcome(LinkLimits(), one_by_one(STREAM)) == whole
    for place in range(len(STREAM) + 1):
        assert link_outcome(LinkLimits(), cut(STREAM, [place])) == whole, place


def test_with_any_byte_changed_only_a_peer_error_comes_out() -> None:
    for wire in (CONTINUED, *(wire for wire, _ in LINES)):
        for place in range(len(wire)):
            before, after = wire[:place], wire[place + 1 :]
            for value in range(256):
                link_outcome(TIGHT, [before + bytes([value]) + after, b"BEAT\n"])


# --- entries


def test_4_5_bridged_entries_are_marked_and_end_a_run() -> None:
    wire = encode_entries(b"s", b"0", 1, b"SEND a b\n" * 2) + encode_entries(
        b"s", b"0", 3, b"SEND a b\n", True
    )
    assert wire.endswith(b"\nBRIDGED s 0 3 a b\n")
    assert link_events_of(wire) == [
        Entries(b"s", b"0", 1, 2, b"SEND a b\n" * 2, False),
        Entries(b"s", b"0", 3, 1, b"SEND a b\n", True),
    ]


def test_4_5_other_origins_and_numbers_that_skip_end_a_run() -> None:
    numbers = [9, 10, 11, 13, 12, 12, 99, 100]
    wire = (
        b"".join(b"ENTRY s 0 %d a b\n" % number for number in numbers)
        + b"ENTRY s 1 101 a b\nENTRY t 1 102 a b\n"
    )
    found = [(event.store, event.incarnation, event.first, event.count) for event in link_events_of(wire)]
    assert found == [
        (b"s", b"0", 9, 3),
        (b"s", b"0", 13, 1),
        (b"s", b"0", 12, 1),
        (b"s", b"0", 12, 1),
        (b"s", b"0", 99, 2),
        (b"s", b"1", 101, 1),
        (b"t", b"1", 102, 1),
    ]


@pytest.mark.parametrize("count", [MAX_RUN - 1, MAX_RUN, MAX_RUN + 1, 2 * MAX_RUN + 7])
def test_4_5_a_run_has_at_most_a_thousand_entries(count: int) -> None:
    events = link_events_of(encode_entries(b"s", b"0", 1, b"SEND a b\n" * count))
    assert [event.count for event in events] == [min(MAX_RUN, count - at) for at in range(0, count, MAX_RUN)]
    assert [event.first for event in events] == list(range(1, count + 1, MAX_RUN))


def test_4_5_entries_are_not_checked_for_utf8() -> None:
    text = bytes(set(range(32, 256)))
    tag = bytes(set(range(33, 256)) - {42})
    block = b"SEND %b %b\n" % (tag, text)
    assert link_events_of(encode_entries(b"s", b"0", 5, block)) == [Entries(b"s", b"0", 5, 1, block, False)]


def test_4_5_numbers_go_up_to_2_53_minus_1() -> None:
    good = b"ENTRY s 0 9007199254740990 a b\nENTRY s 0 9007199254740991 a b\n"
    bad = b"ENTRY s 0 9007199254740992 a b\n"
    wanted = [Entries(b"s", b"0", MAX_NUMBER - 1, 2, b"SEND a b\n" * 2, False)]
    assert link_outcome(LinkLimits(), [good + bad + good]) == (wanted, "bad_line")
    assert link_error_of(bad) == "bad_line"
    assert link_error_of(b"ENTRY s 0 99999999999999999 a b\n") == "bad_line"
    # as if its end had not arrived yet
    assert link_error_of(bad, LinkLimits(max_line_bytes=20)) == "line_too_long"


# --- grammar errors (4.7)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "unknown_verb"),
        (b"have 1 s 0 -", "unknown_verb"),
        (b"SEND a b", "unknown_verb"),
        (b"BEAT\r", "unknown_verb"),
        (b"HAVE 2 s 0 -", "bad_version"),
        (b"HAVE 2", "bad_version"),
        (b"FOLLOW 10 something else\x00altogether", "bad_version"),
        (b"HAVE 01 s 0 -", "bad_version"),
        (b"HAVE", "bad_line"),
        (b"HAVE 1", "bad_line"),
        (b"HAVE x s 0 -", "bad_line"),
        (b"HAVE 1 s 0", "bad_line"),
        (b"HAVE 1 s 0 ", "bad_line"),
        (b"HAVE 1 s  -", "bad_line"),
        (b"HAVE 1 s 0 - 1-0", "bad_line"),
        (b"HAVE 1 s/t 0 -", "bad_line"),
        (b"HAVE 1 s A -", "bad_line"),
        (b"HAVE 1 " + b"s" * 65 + b" 0 -", "bad_line"),
        (b"HAVE 1 s " + b"0" * 65 + b" -", "bad_line"),
        (b"FOLLOW 1 s 0 - ", "bad_line"),
        (b"FOLLOW 1 s 0 - x", "bad_line"),
        (b"FOLLOW 1 s 0 - 1", "bad_line"),
        (b"FOLLOW 1 s 0 - 1-", "bad_line"),
        (b"FOLLOW 1 s 0 - 1-0 ", "bad_line"),
        (b"FOLLOW 1 s 0 - %b-0" % (b"1" * 21), "bad_line"),
        (b"FOLLOW 1 s 0 s/0:1-2, 1-0", "bad_line"),
        (b"ENTRY", "bad_line"),
        (b"ENTRY s 0 1 a", "bad_line"),
        (b"ENTRY s 0 1  b", "bad_line"),
        (b"ENTRY s 0 0 a b", "bad_line"),
        (b"ENTRY s 0 01 a b", "bad_line"),
        (b"ENTRY s 0 -1 a b", "bad_line"),
        (b"ENTRY s 0 1 * b", "bad_line"),
        (b"ENTRY s 0 1 a b\r", "bad_line"),
        (b"ENTRY s 0 1 a b\tc", "bad_line"),
        (b"BRIDGED s 0 1 a", "bad_line"),
        (b"GAP s 0 1", "bad_line"),
        (b"GAP s 0 0 1", "bad_line"),
        (b"GAP s 0 2 1", "bad_line"),
        (b"GAP s 0 1 9007199254740992", "bad_line"),
        (b"GAP s 0 1 2 ", "bad_line"),
        (b"BEAT ", "bad_line"),
        (b"BEAT now", "bad_line"),
        (b"ERROR", "bad_line"),
        (b"ERROR a\tb", "bad_line"),
    ],
)
def test_4_7_violation_of_the_grammar_ends_the_link(line: bytes, reason: str) -> None:
    assert link_outcome(LinkLimits(), [b"BEAT\n" + line + b"\nBEAT\n"]) == ([Beat(None)], reason)


def test_4_7_entries_before_a_bad_one_are_carried_out() -> None:
    good = b"ENTRY s 0 1 a b\nENTRY s 0 2 a b\n"
    events, reason = link_outcome(LinkLimits(), [good + b"ENTRY s 0 3 a\n" + good])
    assert (events, reason) == ([Entries(b"s", b"0", 1, 2, b"SEND a b\n" * 2, False)], "bad_line")


@pytest.mark.parametrize("wire", [b"B", b"BEAT", ENTRY_LINES[:-1], b"HAVE 1 s 0 s/0:1-2,\n"])
def test_4_7_fin_inside_a_line_or_a_list(wire: bytes) -> None:
    events, reason = link_outcome(LinkLimits(), [b"BEAT\n" + wire])
    assert (events[0], reason) == (Beat(None), "truncated")
    assert link_outcome(LinkLimits(), [b"BEAT\n"]) == ([Beat(None)], None)


def test_4_5_encoding_illegal_names_and_numbers_is_a_local_error() -> None:
    for store, incarnation in [(b"", b"0"), (b"s t", b"0"), (b"s", b"A"), (b"s", b""), (b"s" * 65, b"0")]:
        with pytest.raises(LocalError):
            encode_have(store, incarnation, {})
        with pytest.raises(LocalError):
            encode_follow(b"s", b"0", {(store, incarnation): ((1, 2),)})
        with pytest.raises(LocalError):
            encode_gap(store, incarnation, 1, 2)
    for first, last in [(0, 1), (2, 1), (1, MAX_NUMBER + 1)]:
        with pytest.raises(LocalError):
            encode_gap(b"s", b"0", first, last)
        with pytest.raises(LocalError):
            encode_have(b"s", b"0", {(b"s", b"0"): ((first, last),)})
    for first in (0, MAX_NUMBER):
        with pytest.raises(LocalError):
            encode_entries(b"s", b"0", first, BLOCK)

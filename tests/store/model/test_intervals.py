"""Sets of numbers as intervals (services/store/model/intervals.py), beside Python's own sets (pubsub.md 4.4)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.store.model.intervals import MAX_NUMBER, Intervals, Span

SMALL = 40  # few numbers, so that intervals meet

spans = st.tuples(st.integers(1, SMALL), st.integers(1, SMALL)).map(lambda ends: (min(ends), max(ends)))
many_spans = st.lists(spans, max_size=12)


def numbers(pairs: list[Span] | tuple[Span, ...]) -> set[int]:
    return {number for first, last in pairs for number in range(first, last + 1)}


def assert_is(held: Intervals, expected: set[int]) -> None:
    """Assert that a set has these numbers, in sorted spans with gaps in between."""
    assert numbers(held.spans) == expected
    assert all(first <= last for first, last in held.spans)
    ends = zip(held.spans, held.spans[1:], strict=False)
    assert all(later[0] > earlier[1] + 1 for earlier, later in ends)


@given(many_spans)
def test_spans_are_sorted_and_merged(pairs: list[Span]) -> None:
    assert_is(Intervals.of(pairs), numbers(pairs))


@given(many_spans, spans)
@example([(1, 4), (10, 12)], (5, 9))
@example([(1, 4), (10, 12)], (6, 8))
@example([(5, 6)], (1, 3))
def test_add_does_not_change_the_original(pairs: list[Span], added: Span) -> None:
    held = Intervals.of(pairs)
    assert_is(held.add(*added), numbers(pairs) | numbers([added]))
    assert_is(held, numbers(pairs))


@given(many_spans)
def test_spans_added_one_by_one_equal_the_whole_set(pairs: list[Span]) -> None:
    held = Intervals()
    for pair in pairs:
        held = held.add(*pair)
    assert held == Intervals.of(pairs)
    assert hash(held) == hash(Intervals.of(pairs))


@given(many_spans, many_spans)
def test_union(mine: list[Span], others: list[Span]) -> None:
    assert_is(Intervals.of(mine).union(Intervals.of(others)), numbers(mine) | numbers(others))


@given(many_spans, many_spans)
@example([(1, 9)], [(1, 9)])
@example([(1, 9), (20, 30)], [(5, 25)])
@example([(1, 30)], [(1, 2), (9, 9), (30, 40)])
def test_minus(mine: list[Span], others: list[Span]) -> None:
    assert_is(Intervals.of(mine).minus(Intervals.of(others)), numbers(mine) - numbers(others))


@given(many_spans, spans)
def test_holds_covers_and_total(pairs: list[Span], asked: Span) -> None:
    held, expected = Intervals.of(pairs), numbers(pairs)
    assert [number for number in range(SMALL + 2) if held.holds(number)] == sorted(expected)
    assert held.covers(*asked) == (numbers([asked]) <= expected)
    assert held.total() == len(expected)
    assert bool(held) == bool(expected)


@given(many_spans)
def test_text_form_round_trips(pairs: list[Span]) -> None:
    held = Intervals.of(pairs)
    assert Intervals.parse(held.format()) == held
    assert Intervals.parse(held.format().encode()) == held


@given(st.lists(spans, min_size=1, max_size=12))
def test_unsorted_and_overlapping_text_is_parsed(pairs: list[Span]) -> None:
    text = "+".join(f"{first}-{last}" for first, last in pairs)
    assert_is(Intervals.parse(text), numbers(pairs))


def test_text_form() -> None:
    assert Intervals.of([(105, 200), (1, 100)]).format() == "1-100+105-200"
    assert Intervals.of([(101, 200), (1, 100)]).format() == "1-200"
    assert Intervals.of([(MAX_NUMBER, MAX_NUMBER)]).format() == f"{MAX_NUMBER}-{MAX_NUMBER}"


def test_empty_set_has_two_text_forms_and_is_written_as_one() -> None:
    assert Intervals.parse("") == Intervals.parse("-") == Intervals.parse(b"-") == Intervals()
    assert Intervals().format() == "-"


@pytest.mark.parametrize(
    "text",
    [
        *("1", "1-", "-1", "--", "1--2", "1-2-3", "+", "1-2+", "+1-2", "1-2++3-4", "1-2,3-4", "-+1-2"),
        *(
            "0-5",
            "0-0",
            "5-4",
            "01-2",
            "1-02",
            "+1-2",
            "1_0-20",
            "1-2 ",
            " 1-2",
            "1-2\n",
            "a-b",
            "\u0661-2",
            "1-é",
        ),
        *(f"1-{MAX_NUMBER + 1}", f"1-{10**16}", "1-" + "9" * 5000),
    ],
)
def test_invalid_text_is_refused(text: str) -> None:
    for form in (text, text.encode()):
        with pytest.raises(ValueError):
            Intervals.parse(form)


@pytest.mark.parametrize("span", [(0, 1), (2, 1), (-1, 5), (1, MAX_NUMBER + 1)])
def test_numbers_out_of_range_are_refused(span: Span) -> None:
    held = Intervals.of([(1, 3)])
    with pytest.raises(ValueError):
        held.add(*span)
    with pytest.raises(ValueError):
        Intervals.of([span])
    assert_is(held, {1, 2, 3})


def test_thousands_of_intervals_merge_when_filled_from_both_ends() -> None:
    odd = [(number, number) for number in range(1, 8001, 2)]
    held = Intervals.of(odd)
    assert len(held.spans) == 4000
    for number in range(2, 4000, 2):
        held = held.add(number, number).add(8002 - number, 8002 - number)
    assert held.minus(Intervals.of(odd)).total() == 2 * 1999
    assert held.add(4000, 4002).spans == ((1, 8000),)

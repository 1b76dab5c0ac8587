"""Test files of JSON lines, with lines that were cut short."""

from __future__ import annotations

import pytest

from services.kit.metrics.json_lines import encode_line, parse_lines, whole_lines

ONE, TWO = ["a\n\u2028]", [1, 2.5, {"queue_full": 1}], []], ["b", 7.25]


def test_json_lines_round_trip() -> None:
    text = encode_line(ONE) + encode_line(TWO)
    assert [*parse_lines(text)] == [ONE, TWO]
    assert whole_lines(text) == text


@pytest.mark.parametrize("cut", range(len(encode_line(ONE))))
def test_truncated_lines_are_skipped(cut: int) -> None:
    """Check that truncated lines are skipped, at the end of the file or before others."""
    begun = encode_line(ONE)[:cut]
    assert [*parse_lines(encode_line(TWO) + begun)] == [TWO]
    assert whole_lines(encode_line(TWO) + begun) == encode_line(TWO)
    (*glued, last) = parse_lines(begun + encode_line(TWO) + encode_line(ONE))
    assert (last, glued) == (ONE, [] if cut else [TWO])

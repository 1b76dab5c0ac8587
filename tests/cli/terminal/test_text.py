"""Test that untrusted bytes are escaped before a terminal sees them."""

from __future__ import annotations

import pytest

from services.cli.terminal.text import age, count, legible, preview, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 語", "plain é 語"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\r\nb\tc\x00", "a\\x0d\\x0ab\\x09c\\x00"),
        ("\x9b31m", "\\x9b31m"),  # CSI in one character
        ("right\u202eleft", "right\\u202eleft"),
        (b"\xff\xfe".decode("utf-8", "surrogateescape"), "\\xff\\xfe"),
        ("\ud800", "\\ud800"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert shown.encode()


def test_every_byte_is_printable_or_escaped() -> None:
    for octet in range(256):
        shown = printable(bytes([octet]).decode("utf-8", "surrogateescape"))
        assert shown.isprintable()


def test_a_whole_body_keeps_its_lines() -> None:
    assert legible(b"a\tb\nc\x07\xff") == b"a\tb\nc\\x07\\xff"


@pytest.mark.parametrize(("size", "cut"), [(10, False), (11, True), (5000, True)])
def test_a_preview_is_cut(size: int, cut: bool) -> None:
    shown = preview(b"x" * size, width=10)
    assert len(shown) == 10
    assert shown.endswith("…") is cut


def test_cut_preview_of_wide_characters_has_an_ellipsis() -> None:
    assert preview(("語" * 20).encode(), width=10).endswith("…")


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(0, "0s"), (999, "0s"), (59_999, "59s"), (90_000, "1m"), (7_200_000, "2h"), (200_000_000, "2d")],
)
def test_ages_are_in_the_largest_whole_unit(ms: int, shown: str) -> None:
    assert age(ms) == shown


def test_singular_has_no_s() -> None:
    assert [count(number, "message") for number in (0, 1, 1234)] == [
        "0 messages",
        "1 message",
        "1,234 messages",
    ]

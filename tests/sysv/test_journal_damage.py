"""Test damaged journals, and how they are put aside (docs/sysv.md 3.7)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.sysv.journal import MAX_SIZE, Journal
from services.sysv.journal_file import JournalError
from services.sysv.record import BODY_AT, MAGIC, parse
from tests.sysv.journals import ROOM, asides, at_each_line, errors, receive, take


def test_unused_journal_is_not_damaged(path: Path, open_journal: Callable[..., Journal]) -> None:
    open_journal().close()
    assert open_journal().pending is None
    assert asides(path) == []


def test_journal_is_created_atomically(path: Path) -> None:
    """Check that a kill during creation leaves nothing that the next start takes for damage (3.7)."""
    journal = Journal(path)
    found: list[object] = []
    at_each_line(
        lambda: journal.open(ROOM), lambda: found.append(parse(path.read_bytes()) if path.exists() else "")
    )
    assert set(found) == {"", None}
    journal.close()
    path.rename(path.with_name(f"{path.name}.new"))  # as after a kill
    journal.open(ROOM)
    journal.close()
    assert [*path.parent.iterdir()] == [path]


def test_oversized_file_is_read_up_to_the_limit(path: Path, open_journal: Callable[..., Journal]) -> None:
    """Check that a file larger than the available memory is read only up to the limit."""
    journal = open_journal()
    record = receive(journal, b"hello")
    journal.close()
    os.truncate(path, 1 << 40)
    again = open_journal(1 << 40)
    assert again.pending == record
    assert again.room == MAX_SIZE - BODY_AT
    again.close()
    path.unlink()
    path.touch()
    os.truncate(path, 1 << 40)
    assert open_journal().pending is None
    assert len(asides(path)) == 1


def test_message_of_unknown_length_is_put_aside(
    path: Path, open_journal: Callable[..., Journal], caplog: pytest.LogCaptureFixture
) -> None:
    """Check that a message of unknown length is put aside, as without MSG_COPY (3.7)."""
    journal = open_journal()
    receive(journal, b"first")
    journal.strike()
    take(journal, b"second", seen=False)
    journal.close()
    again = open_journal()
    assert again.pending is None
    assert errors(caplog) == ["journal_damaged"]
    (aside,) = asides(path)
    assert b"second" in aside.read_bytes()


def test_damaged_journal_stays_locked_while_it_is_replaced(
    path: Path, open_journal: Callable[..., Journal]
) -> None:
    path.parent.mkdir()
    path.write_bytes(MAGIC + b"\xff" * 5000)
    open_journal()
    with pytest.raises(JournalError, match="in use"):
        open_journal()
    assert len(asides(path)) == 1


@pytest.mark.parametrize(
    "content", [b"", b"x", MAGIC, b"#!/bin/sh\n" * 100, bytes(10_000) + b"x", bytes(10_000)]
)
def test_invalid_file_is_put_aside_unchanged(
    path: Path, open_journal: Callable[..., Journal], content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Check that an invalid file is put aside unchanged, also an empty one, which no journal ever is (3.7)."""
    path.parent.mkdir()
    path.write_bytes(content)
    assert open_journal().pending is None
    (aside,) = asides(path)
    assert aside.read_bytes() == content
    assert errors(caplog) == ["journal_damaged"]


def damaged_in_every_place(whole: bytes) -> Iterator[bytes]:
    """Yield copies cut at each octet, and with each octet changed."""
    for at in range(len(whole)):
        yield whole[:at]
        yield whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]


@pytest.mark.parametrize("is_struck", [False, True])
def test_damage_at_any_octet_is_survived(
    path: Path, open_journal: Callable[..., Journal], caplog: pytest.LogCaptureFixture, is_struck: bool
) -> None:
    """Check that damage keeps the pending message or puts the file aside with an error; no number is reused (3.7)."""
    caplog.set_level(logging.CRITICAL)
    journal = open_journal(16)
    receive(journal, b"first")
    journal.strike()
    old = receive(journal, b"second", 3)
    if is_struck:
        journal.strike()
    journal.close()
    whole = path.read_bytes()
    for damaged in damaged_in_every_place(whole):
        path.write_bytes(damaged)
        for aside in asides(path):
            aside.unlink()
        again = open_journal(16)
        if again.pending is not None:
            assert again.pending == old
            again.strike()
        else:
            assert is_struck or asides(path)
        assert receive(again, b"third").journal != old.journal
        again.close()

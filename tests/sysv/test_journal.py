"""Test journals: locks, allocated space, recovery after a crash (docs/sysv.md 3.2, 3.3, 3.7)."""

from __future__ import annotations

import ctypes
import errno
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

from services.sysv.journal import Journal
from services.sysv.journal_file import JournalError
from services.sysv.kernel import MTYPE, READ, LocalQueue, msgmax
from services.sysv.record import BODY_AT, Record, parse
from services.sysv.settings import Format
from tests.sysv.journals import QUEUE, ROOM, at_each_line, files_of_at_most, receive, take
from tests.sysv.local import make, take_all


def test_new_journal_is_empty_and_allocated(path: Path, open_journal: Callable[..., Journal]) -> None:
    journal = open_journal()
    assert journal.pending is None
    assert journal.room == ROOM
    assert path.stat().st_size == BODY_AT + ROOM
    assert path.stat().st_blocks * 512 >= BODY_AT + ROOM  # allocated, not sparse
    assert path.stat().st_mode & 0o777 == 0o600


def test_large_journal_does_not_slow_small_messages(path: Path, open_journal: Callable[..., Journal]) -> None:
    """Check that only the space that a message may use is written (3.2)."""
    journal = open_journal()
    receive(journal, b"x" * ROOM)
    journal.strike()
    receive(journal, b"small")
    assert path.read_bytes().endswith(b"x" * (ROOM - len(b"small")))


def test_received_message_is_pending_until_struck(open_journal: Callable[..., Journal]) -> None:
    journal = open_journal()
    record = receive(journal, b"hello", 7)
    assert (record.body, record.mtype, record.number, record.queue) == (b"hello", 7, 1, QUEUE)
    journal.sync()
    journal.close()
    again = open_journal()
    assert again.pending == record
    again.strike()
    again.close()
    assert open_journal().pending is None


def test_each_run_numbers_messages_under_its_own_name(
    path: Path, open_journal: Callable[..., Journal]
) -> None:
    """Check that each run has its own journal name, also with a copy; a pending message keeps its number (3.3)."""
    names, whole = [], []
    for _ in range(3):
        journal = open_journal()
        for number in (1, 2):
            record = receive(journal, b"hello")
            assert record.number == number
            names.append(record.journal)
            whole.append((path.read_bytes(), record))
            journal.strike()
        journal.close()
    assert len(set(names)) == 3
    for copy, record in whole:
        path.write_bytes(copy)
        journal = open_journal()
        assert journal.pending == record
        journal.strike()
        assert receive(journal, b"another").journal not in names
        journal.close()


def test_numbers_rise_and_bodies_do_not_mix(open_journal: Callable[..., Journal]) -> None:
    journal = open_journal()
    bodies = [b"a" * ROOM, b"", b"b" * 10, b"c"]
    found = []
    for body in bodies:
        found.append(receive(journal, body))
        journal.strike()
    assert [record.body for record in found] == bodies
    assert [record.number for record in found] == [1, 2, 3, 4]
    assert len({record.journal for record in found}) == 1


def test_kill_before_the_receipt_loses_nothing(open_journal: Callable[..., Journal]) -> None:
    """Check that a message is kept without a receipt, an fsync or any further instruction (3.2)."""
    journal = open_journal()
    receive(journal, b"first")
    journal.strike()
    take(journal, b"second", 3)
    journal.close()
    found = open_journal().pending
    assert found is not None
    assert (found.body, found.mtype, found.number) == (b"second", 3, 2)


def test_kill_before_msgrcv_leaves_nothing_pending(open_journal: Callable[..., Journal]) -> None:
    journal = open_journal()
    receive(journal, b"first")
    journal.strike()
    journal.plan(QUEUE, Format.RAW, 5, 5, 12345)
    journal.close()
    assert open_journal().pending is None


def test_second_bridge_is_excluded(open_journal: Callable[..., Journal]) -> None:
    journal = open_journal()
    with pytest.raises(JournalError, match="in use") as caught:
        open_journal()
    assert caught.value.reason == "in_use"
    journal.close()
    open_journal()


def test_uncreatable_folder_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="is unusable: File exists") as caught:
        Journal(tmp_path / "file" / "x.journal").open(ROOM)
    assert caught.value.reason == "no_journal"


def broken(_: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_nothing_is_received_without_space(open_journal: Callable[..., Journal]) -> None:
    """Check that space is reserved before `msgrcv`: at the start, for larger messages, and for each message (3.2)."""
    journal = open_journal()
    receive(journal, b"first")
    journal.strike()
    with files_of_at_most(BODY_AT + ROOM + 100), pytest.raises(JournalError, match="no room") as caught:
        journal.grow(2 * ROOM)
    assert caught.value.reason == "no_space"
    assert receive(journal, b"second").number == 2  # as before
    journal.strike()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        with pytest.raises(JournalError, match="Input/output error"):
            journal.grow(2 * ROOM)
    assert receive(journal, b"third").number == 3
    journal.strike()
    with files_of_at_most(100), pytest.raises(JournalError, match="cannot be written") as caught:
        journal.plan(QUEUE, Format.RAW, 0)
    assert caught.value.reason == "no_space"


def test_journal_grows(path: Path, open_journal: Callable[..., Journal]) -> None:
    journal = open_journal()
    receive(journal, b"first")
    journal.strike()
    journal.grow(2 * ROOM)
    assert journal.room == 2 * ROOM
    record = receive(journal, b"x" * 2 * ROOM)
    journal.close()
    again = open_journal()  # space is never released
    assert again.pending == record
    assert again.room == 2 * ROOM
    assert path.stat().st_size == BODY_AT + 2 * ROOM


def test_pending_message_of_an_earlier_run(open_journal: Callable[..., Journal]) -> None:
    """Check that a pending message of an earlier run becomes number 1 under the new journal name (3.3)."""
    journal = open_journal()
    receive(journal, b"before")
    journal.strike()
    old = receive(journal, b"hello", 7)
    new = journal.renew()
    assert new.journal != old.journal
    assert (new.number, new.body, new.mtype) == (1, b"hello", 7)
    journal.close()
    again = open_journal()
    assert again.pending == new
    again.strike()
    again.close()
    assert open_journal().pending is None


def test_kill_during_renaming_leaves_old_or_new_name(
    path: Path, open_journal: Callable[..., Journal]
) -> None:
    """Check that a kill during renaming leaves the message in the file, with the old or the new name (3.3)."""
    journal = open_journal()
    old = receive(journal, b"hello", 7)
    found: list[Record | None] = []
    at_each_line(journal.renew, lambda: found.append(parse(path.read_bytes())))
    assert found[0] == old
    assert set(found) == {old, journal.pending}


def test_failed_renaming_keeps_the_message(open_journal: Callable[..., Journal]) -> None:
    """Check that a failed renaming is ignored, as the file still has the message (3.3)."""
    journal = open_journal()
    old = receive(journal, b"hello")
    with files_of_at_most(0):
        new = journal.renew()
    assert journal.pending == new
    assert new.journal != old.journal
    journal.close()
    assert open_journal().pending == old


def take_and_die(path: Path, key: int) -> None:
    """Receive a message as a bridge that is killed as soon as `msgrcv` has returned."""
    queue, journal = LocalQueue(key, READ), Journal(path)
    queue.open()
    journal.open(msgmax())
    seen = ctypes.create_string_buffer(MTYPE + journal.room)
    size = queue.peek(ctypes.addressof(seen), journal.room)
    assert size is not None
    journal.plan(QUEUE, Format.RAW, size, size, crc32(seen.raw[: MTYPE + size]))
    queue.receive(journal.address, size)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("body", [b"", b"hello", b"\0" * 100, bytes(8192)], ids=len)
def test_kill_at_the_return_of_msgrcv(
    path: Path, open_journal: Callable[..., Journal], key: int, body: bytes
) -> None:
    """Check that a message that `msgrcv` has removed from its queue is in the journal (3.2)."""
    make(key).send(body, type=9)
    child = multiprocessing.get_context("fork").Process(target=take_and_die, args=(path, key))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert take_all(key) == []
    found = open_journal().pending
    assert found is not None
    assert (found.body, found.mtype) == (body, 9)

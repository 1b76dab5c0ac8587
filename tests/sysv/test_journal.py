"""Journals: locked, with space reserved, read again after a crash (docs/sysv.md 3.2, 3.3, 3.7)."""

from __future__ import annotations

import ctypes
import errno
import logging
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import pytest

from services.sysv.journal import LARGEST, Journal
from services.sysv.journal_file import JournalError
from services.sysv.kernel import MTYPE, READ, LocalQueue, msgmax
from services.sysv.record import BODY_AT, KERNEL_LONG, MAGIC, UNSEEN, Record, parse
from services.sysv.settings import Format
from tests.sysv.local import make, take_all

ROOM = 4096
QUEUE = "orders"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journals" / "0x0000002a.journal"


@pytest.fixture
def open_journal(path: Path) -> Iterator[Callable[..., Journal]]:
    opened: list[Journal] = []

    def make(room: int = ROOM) -> Journal:
        journal = Journal(path)
        opened.append(journal)
        journal.open(room)
        return journal

    yield make
    for journal in opened:
        journal.close()


def kernel_writes(journal: Journal, body: bytes, mtype: int) -> None:
    """As `msgrcv` does: at an address, past all of Python."""
    ctypes.memmove(journal.address, KERNEL_LONG.pack(mtype) + body, KERNEL_LONG.size + len(body))


def take(journal: Journal, body: bytes, mtype: int = 1, *, seen: bool = True) -> None:
    """Up to what the kernel does."""
    look = (len(body), crc32(KERNEL_LONG.pack(mtype) + body)) if seen else (UNSEEN, 0)
    journal.plan(QUEUE, Format.RAW, len(body), *look)
    kernel_writes(journal, body, mtype)


def receive(journal: Journal, body: bytes, mtype: int = 1) -> Record:
    take(journal, body, mtype)
    return journal.received(len(body))


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [getattr(line, "action", "") for line in caplog.records if line.levelno >= logging.ERROR]


def asides(path: Path) -> list[Path]:
    return list(path.parent.glob("*.damaged-*"))


def test_a_new_one_is_empty_and_has_its_space(path: Path, open_journal: Callable[..., Journal]) -> None:
    journal = open_journal()
    assert journal.pending is None
    assert journal.room == ROOM
    assert path.stat().st_size == BODY_AT + ROOM
    assert path.stat().st_blocks * 512 >= BODY_AT + ROOM  # not a hole
    assert path.stat().st_mode & 0o777 == 0o600


def test_one_that_was_never_used_is_no_damage(path: Path, open_journal: Callable[..., Journal]) -> None:
    open_journal().close()
    assert open_journal().pending is None
    assert asides(path) == []


def test_it_is_made_whole_or_not_at_all(path: Path) -> None:
    """3.7: a kill at any time leaves nothing that the next start would take for damage."""
    journal = Journal(path)
    found: list[object] = []
    at_each_line(
        lambda: journal.open(ROOM), lambda: found.append(parse(path.read_bytes()) if path.exists() else "")
    )
    assert set(found) == {"", None}
    journal.close()
    path.rename(path.with_name(f"{path.name}.new"))  # as a kill leaves it
    journal.open(ROOM)
    journal.close()
    assert [*path.parent.iterdir()] == [path]


def test_a_large_room_costs_a_small_message_nothing(path: Path, open_journal: Callable[..., Journal]) -> None:
    """3.2: only what it may use is written."""
    journal = open_journal()
    receive(journal, b"x" * ROOM)
    journal.strike()
    receive(journal, b"small")
    assert path.read_bytes().endswith(b"x" * (ROOM - len(b"small")))


def test_a_file_larger_than_any_journal(path: Path, open_journal: Callable[..., Journal]) -> None:
    """It may be larger than the memory there is."""
    journal = open_journal()
    record = receive(journal, b"hello")
    journal.close()
    os.truncate(path, 1 << 40)
    again = open_journal(1 << 40)
    assert again.pending == record
    assert again.room == LARGEST - BODY_AT
    again.close()
    path.unlink()
    path.touch()
    os.truncate(path, 1 << 40)
    assert open_journal().pending is None
    assert len(asides(path)) == 1


def test_what_was_received_is_pending_until_it_is_struck(open_journal: Callable[..., Journal]) -> None:
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


def test_each_run_counts_under_a_name_of_its_own(path: Path, open_journal: Callable[..., Journal]) -> None:
    """3.3: whatever the file says, also one from a copy; and what is pending keeps its number."""
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


def test_a_kill_right_after_the_kernel_wrote_loses_nothing(open_journal: Callable[..., Journal]) -> None:
    """3.2: no receipt, no fsync, not even one more instruction."""
    journal = open_journal()
    receive(journal, b"first")
    journal.strike()
    take(journal, b"second", 3)
    journal.close()
    found = open_journal().pending
    assert found is not None
    assert (found.body, found.mtype, found.number) == (b"second", 3, 2)


def test_a_kill_before_the_kernel_wrote_leaves_nothing(open_journal: Callable[..., Journal]) -> None:
    journal = open_journal()
    receive(journal, b"first")
    journal.strike()
    journal.plan(QUEUE, Format.RAW, 5, 5, 12345)
    journal.close()
    assert open_journal().pending is None


def test_a_message_of_unknown_length_is_put_aside(
    path: Path, open_journal: Callable[..., Journal], caplog: pytest.LogCaptureFixture
) -> None:
    """3.7: without MSG_COPY."""
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


def test_a_second_bridge_is_kept_out(open_journal: Callable[..., Journal]) -> None:
    journal = open_journal()
    with pytest.raises(JournalError, match="in use") as caught:
        open_journal()
    assert caught.value.reason == "in_use"
    journal.close()
    open_journal()


def test_a_damaged_one_is_still_locked_when_it_begins_anew(
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
def test_what_is_no_journal_is_put_aside_whole(
    path: Path, open_journal: Callable[..., Journal], content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """3.7: one that is empty, too, for a journal never is."""
    path.parent.mkdir()
    path.write_bytes(content)
    assert open_journal().pending is None
    (aside,) = asides(path)
    assert aside.read_bytes() == content
    assert errors(caplog) == ["journal_damaged"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot be used: File exists") as caught:
        Journal(tmp_path / "file" / "x.journal").open(ROOM)
    assert caught.value.reason == "no_journal"


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Those of this process: a full disk. Over before the test is, for pytest's own output may be a file, too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def broken(_: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_without_space_nothing_may_be_taken(open_journal: Callable[..., Journal]) -> None:
    """3.2: the space is reserved before `msgrcv`, at the start, for larger messages, and for each message."""
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


def test_more_room(path: Path, open_journal: Callable[..., Journal]) -> None:
    journal = open_journal()
    receive(journal, b"first")
    journal.strike()
    journal.grow(2 * ROOM)
    assert journal.room == 2 * ROOM
    record = receive(journal, b"x" * 2 * ROOM)
    journal.close()
    again = open_journal()  # room is never given up
    assert again.pending == record
    assert again.room == 2 * ROOM
    assert path.stat().st_size == BODY_AT + 2 * ROOM


def test_what_is_pending_under_another_name(open_journal: Callable[..., Journal]) -> None:
    """3.3: where somebody else counts as we do."""
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


def at_each_line(work: Callable[[], object], look: Callable[[], None]) -> None:
    """What would be there if the process were killed at any line of `work`."""

    def trace(*_: object) -> object:
        look()
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        work()
    finally:
        sys.settrace(None)


def test_a_kill_while_it_gets_another_name(path: Path, open_journal: Callable[..., Journal]) -> None:
    """3.3: the message is in the file all the time, under the one name or the other."""
    journal = open_journal()
    old = receive(journal, b"hello", 7)
    found: list[Record | None] = []
    at_each_line(journal.renew, lambda: found.append(parse(path.read_bytes())))
    assert found[0] == old
    assert set(found) == {old, journal.pending}


def test_another_name_that_cannot_be_written(open_journal: Callable[..., Journal]) -> None:
    """3.3: it is used all the same; the file still has the message."""
    journal = open_journal()
    old = receive(journal, b"hello")
    with files_of_at_most(0):
        new = journal.renew()
    assert journal.pending == new
    assert new.journal != old.journal
    journal.close()
    assert open_journal().pending == old


def take_and_die(path: Path, key: int) -> None:
    """A bridge that is killed as soon as `msgrcv` has returned."""
    queue, journal = LocalQueue(key, READ), Journal(path)
    queue.open()
    journal.open(msgmax())
    seen = ctypes.create_string_buffer(MTYPE + journal.room)
    size = queue.look(ctypes.addressof(seen), journal.room)
    assert size is not None
    journal.plan(QUEUE, Format.RAW, size, size, crc32(seen.raw[: MTYPE + size]))
    queue.receive(journal.address, size)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("body", [b"", b"hello", b"\0" * 100, bytes(8192)], ids=len)
def test_a_kill_at_the_return_of_msgrcv(
    path: Path, open_journal: Callable[..., Journal], key: int, body: bytes
) -> None:
    """3.2: the message is in no queue any more, and it is in the journal."""
    make(key).send(body, type=9)
    child = multiprocessing.get_context("fork").Process(target=take_and_die, args=(path, key))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert take_all(key) == []
    found = open_journal().pending
    assert found is not None
    assert (found.body, found.mtype) == (body, 9)


def damaged_in_every_place(whole: bytes) -> Iterator[bytes]:
    """Cut at each octet, and with each octet changed."""
    for at in range(len(whole)):
        yield whole[:at]
        yield whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]


@pytest.mark.parametrize("is_struck", [False, True])
def test_damage_at_any_octet_is_survived(
    path: Path, open_journal: Callable[..., Journal], caplog: pytest.LogCaptureFixture, is_struck: bool
) -> None:
    """3.7: what is pending is what was, or the file is put aside, with an error; a number is never used again."""
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

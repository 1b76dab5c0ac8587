"""Test local queues (docs/sysv.md 1.3, 2, 4)."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
from collections.abc import Callable

import pytest

from services.sysv.kernel import MTYPE, READ, WRITE, LocalQueue, LocalQueueError, Removed, TooLarge, msgmax
from tests.sysv.local import existing, find, make, shown_by_ipcs, take_all

NOBODY = 65_534


def opened(key: int, rights: int = READ | WRITE) -> LocalQueue:
    queue = LocalQueue(key, rights)
    queue.open()
    return queue


def received(queue: LocalQueue, room: int = 8192, *, peek: bool = False) -> tuple[bytes, int] | None:
    buffer = ctypes.create_string_buffer(MTYPE + room)
    size = (queue.peek if peek else queue.receive)(ctypes.addressof(buffer), room)
    if size is None:
        return None
    return buffer.raw[MTYPE : MTYPE + size], int.from_bytes(buffer.raw[:MTYPE], "little")


def test_missing_queue_is_created_with_its_mode(key: int) -> None:
    """Check that a missing queue is created with the mapping's mode (4.2)."""
    queue = LocalQueue(key, READ, 0o640)
    queue.open()
    assert queue.is_created
    shown = shown_by_ipcs(key)
    assert shown is not None
    assert shown[2] == "640"
    again = opened(key)
    assert not again.is_created


def test_missing_queue_without_create_is_an_error(key: int) -> None:
    with pytest.raises(LocalQueueError, match=r"the local queue with key .* does not exist") as caught:
        LocalQueue(key, READ, create=False).open()
    assert caught.value.reason == "missing"
    assert find(key) is None


def test_messages_come_as_they_were_sent(key: int) -> None:
    queue = opened(key)
    for body, mtype in ((b"one", 7), (b"", 1), (bytes(range(256)), (1 << 63) - 1)):
        assert queue.send(body, mtype)
    assert received(queue, peek=True) == (b"one", 7)
    assert [received(queue) for _ in range(4)] == [
        (b"one", 7),
        (b"", 1),
        (bytes(range(256)), (1 << 63) - 1),
        None,
    ]
    assert received(queue, peek=True) is None


def test_only_the_body_is_sent(key: int) -> None:
    opened(key).send(b"abc", 5)
    assert take_all(key) == [(b"abc", 5)]


def test_full_local_queue_is_reported(key: int) -> None:
    """Check that a full local queue is reported without waiting (2.3)."""
    queue = opened(key)
    body = bytes(8192)
    assert queue.send(body, 1)
    assert queue.send(body, 1)
    assert not queue.send(body, 1)
    assert queue.waiting() == 2


def test_limit_is_the_smaller_of_msgmax_and_qbytes(key: int) -> None:
    """Check that the limit of a message is the smaller of msgmax and msg_qbytes (2.4)."""
    queue = opened(key)
    assert queue.limit() == min(msgmax(), existing(key).max_size)
    existing(key).max_size = 100
    assert queue.limit() == 100
    assert not queue.send(bytes(101), 1)  # EAGAIN for ever, so waiting would not help
    assert queue.send(bytes(100), 1)


def test_removed_queue_is_reopened(key: int) -> None:
    """Check that a removed queue is noticed by each use, and can be opened again (2.6)."""
    queue = opened(key)
    uses: list[Callable[[], object]] = [
        lambda: queue.send(b"x", 1),
        lambda: received(queue),
        queue.limit,
        queue.waiting,
    ]
    for use in uses:
        existing(key).remove()
        with pytest.raises(Removed):
            use()
        queue.open()
        assert queue.send(b"x", 1)
    existing(key).remove()
    queue.remove()  # removing it again is no error


def test_message_without_space_stays_in_the_local_queue(key: int) -> None:
    queue = opened(key)
    queue.send(bytes(101), 1)
    with pytest.raises(TooLarge):
        received(queue, 100)
    assert received(queue, 101) == (bytes(101), 1)


def _as_nobody(work: Callable[[int], None], key: int) -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    work(key)


def in_a_process_of_nobody(work: Callable[[int], None], key: int) -> int:
    child = multiprocessing.get_context("fork").Process(target=_as_nobody, args=(work, key))
    child.start()
    child.join(60)
    assert child.exitcode is not None
    return child.exitcode


def _may_only_send(key: int) -> None:
    queue = opened(key, WRITE)
    assert queue.send(b"x", 1)
    assert queue.limit() == msgmax()
    with pytest.raises(
        LocalQueueError, match=r"may not be read by uid 65534: it belongs to uid 0 and has mode 0602"
    ):
        opened(key, READ)
    with pytest.raises(LocalQueueError) as caught:
        queue.waiting()
    assert caught.value.reason == "denied"
    with pytest.raises(LocalQueueError, match="may not be"):
        queue.remove()
    assert find(key) is not None


def test_only_needed_rights_are_requested(key: int) -> None:
    """Check that only the needed rights on another user's queue are used, and one log line names its owner (4.3)."""
    make(key, 0o602)
    assert in_a_process_of_nobody(_may_only_send, key) == 0
    assert take_all(key) == [(b"x", 1)]


def _loses_its_rights(key: int) -> None:
    queue = opened(key)
    existing(key).mode = 0
    for use in (lambda: queue.send(b"x", 1), lambda: received(queue), queue.waiting, queue.open):
        with pytest.raises(LocalQueueError) as caught:
            use()
        assert caught.value.reason == "denied"


def test_revoked_rights_are_waited_for(key: int) -> None:
    """Check that revoked rights are waited for (2.6)."""
    assert in_a_process_of_nobody(_loses_its_rights, key) == 0

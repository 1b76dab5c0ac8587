"""Use System V message queues.

All calls return at once (IPC_NOWAIT): only a signal ends a call that waits, and a thread inside `msgrcv` would receive
a message when none may be received (docs/sysv.md 3.4). Callers poll.

`sysv_ipc` creates, opens, inspects and removes queues. Sending and receiving use libc: the library sends no `mtype`
beyond 2^31-1, and receives into private memory, but a message must be received directly into the journal (3.2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

import sysv_ipc

from services.sysv.settings import MAX_BODY, format_key

READ, WRITE = 0o400, 0o200  # access requested when a queue is opened
IPC_NOWAIT = 0o4000
MSG_COPY = 0o40000  # copy a message without removing it (Linux 3.8)
MSGMAX = Path("/proc/sys/kernel/msgmax")
ALL_QUEUES = Path("/proc/sysvipc/msg")
MTYPE = ctypes.sizeof(ctypes.c_long)  # octets before the body, in native byte order
MAX_MTYPE = (1 << 8 * MTYPE - 1) - 1  # largest mtype

_libc = ctypes.CDLL(None, use_errno=True)
_libc.msgsnd.restype = ctypes.c_int
_libc.msgsnd.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int)
_libc.msgrcv.restype = ctypes.c_ssize_t
_libc.msgrcv.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long, ctypes.c_int)


class LocalQueueError(Exception):
    """An unusable local queue; `reason` is a stable label."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Removed(LocalQueueError):
    """The local queue was removed: open it again."""


class TooLarge(LocalQueueError):
    """A message whose body or type does not fit. It stays where it is."""


def msgmax() -> int:
    """Return the kernel's limit for a body in octets."""
    return int(MSGMAX.read_text())


class LocalQueue:
    """The local queue of one key, opened for READ or WRITE."""

    def __init__(self, key: int, rights: int, mode: int = 0o600, *, create: bool = True) -> None:
        self.key = key
        self._made: int | None = None  # id of the last queue that we created
        self._rights = rights
        self._mode = mode
        self._create = create
        self._queue: sysv_ipc.MessageQueue | None = None

    def open(self) -> None:
        """Open the queue, or create it. Raises LocalQueueError: denied, missing, refused."""
        self._queue = self._find()
        while self._queue is None:
            self._make()
            self._queue = self._find()

    @property
    def is_created(self) -> bool:
        """Return whether we created the queue that is open."""
        return self._queue is not None and self._queue.id == self._made

    def _find(self) -> sysv_ipc.MessageQueue | None:
        try:
            return sysv_ipc.MessageQueue(self.key, 0, self._rights, MAX_BODY)
        except sysv_ipc.ExistentialError:
            return None
        except sysv_ipc.PermissionsError:
            raise self._denied() from None

    def _make(self) -> None:
        """Create the queue. The caller opens it again, as its mode may deny us access."""
        if not self._create:
            raise LocalQueueError(
                "missing", f"the local queue with key {format_key(self.key)} does not exist"
            )
        try:
            self._made = sysv_ipc.MessageQueue(self.key, sysv_ipc.IPC_CREX, self._mode, MAX_BODY).id
        except sysv_ipc.ExistentialError:
            return  # another process was faster
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            text = f"the local queue with key {format_key(self.key)} cannot be created: {why}"
            raise LocalQueueError("refused", text) from None

    def _denied(self) -> LocalQueueError:
        what = "read" if self._rights == READ else "written"
        text = f"the local queue with key {format_key(self.key)} may not be {what} by uid {os.geteuid()}"
        return LocalQueueError("denied", f"{text}{self._owner()}")

    def _owner(self) -> str:
        """Return ': it belongs to uid 0 and has mode 0600', or '' if unknown."""
        try:
            lines = ALL_QUEUES.read_text().splitlines()[1:]
        except OSError:
            return ""
        for key, _, mode, _, _, _, _, uid, *_ in map(str.split, lines):
            if int(key) == self.key:
                return f": it belongs to uid {uid} and has mode {int(mode, 8) & 0o777:04o}"
        return ""

    @property
    def _open(self) -> sysv_ipc.MessageQueue:
        if self._queue is None:
            raise Removed("removed", f"the local queue with key {format_key(self.key)} is not open")
        return self._queue

    def limit(self) -> int:
        """Return the limit for a body in octets: min(msgmax, msg_qbytes). Raises LocalQueueError."""
        try:
            return min(msgmax(), int(self._open.max_size))
        except sysv_ipc.ExistentialError:
            raise self._removed() from None
        except sysv_ipc.PermissionsError:  # needs read access
            return msgmax()

    def check(self, size: int) -> int:
        """Return `limit`. Raises TooLarge if `size` exceeds it, LocalQueueError."""
        limit = self.limit()
        if size > limit:
            raise TooLarge(
                "unencodable", f"the message has {size:,} octets, the limit of the local queue is {limit:,}"
            )
        return limit

    def exists(self) -> bool:
        """Return whether the queue has not been removed. Works without read access."""
        try:
            return self._queue is not None and self._queue.current_messages >= 0
        except sysv_ipc.ExistentialError:
            return False
        except sysv_ipc.PermissionsError:
            return True

    def waiting(self) -> int:
        """Return the number of messages in the queue. Raises LocalQueueError."""
        try:
            return int(self._open.current_messages)
        except sysv_ipc.ExistentialError:
            raise self._removed() from None
        except sysv_ipc.PermissionsError:
            raise self._denied() from None

    def _removed(self) -> Removed:
        return Removed("removed", f"the local queue with key {format_key(self.key)} was removed")

    def send(self, body: bytes, mtype: int) -> bool:
        """Send a message. Return False if the queue is full. Raises Removed, TooLarge, LocalQueueError."""
        if mtype > MAX_MTYPE:
            raise TooLarge("unencodable", f"the type {mtype:,} does not fit in this machine's `long`")
        message = mtype.to_bytes(MTYPE, sys.byteorder) + body
        while _libc.msgsnd(self._open.id, message, len(body), IPC_NOWAIT) < 0:
            match ctypes.get_errno():
                case errno.EAGAIN:
                    return False
                case errno.EINTR:
                    continue
                case errno.EIDRM:
                    raise self._removed()
                case errno.EINVAL:  # the body exceeds msgmax, or the queue was removed before
                    self.check(len(body))
                    raise self._removed()
                case errno.EACCES:
                    raise self._denied()
                case number:
                    raise LocalQueueError("refused", f"msgsnd: {os.strerror(number)}")
        return True

    def receive(self, address: int, room: int) -> int | None:
        """Receive the next message to `address`: mtype, then the body. Return the body's size, None without a message.

        Raises TooLarge for a body of more than `room` octets, Removed, LocalQueueError.
        """
        return self._msgrcv(address, room, IPC_NOWAIT)

    def peek(self, address: int, room: int) -> int | None:
        """Copy the next message as `receive` does. Return None also if the kernel cannot copy it."""
        try:
            return self._msgrcv(address, room, IPC_NOWAIT | MSG_COPY)
        except Removed:  # EINVAL may also mean that the message is larger than msgmax is now
            return None

    def _msgrcv(self, address: int, room: int, flags: int) -> int | None:
        while True:
            size = int(_libc.msgrcv(self._open.id, address, room, 0, flags))
            if size >= 0:
                return size
            match ctypes.get_errno():
                case errno.ENOMSG | errno.ENOSYS:
                    return None
                case errno.EINTR:
                    continue
                case errno.EIDRM | errno.EINVAL:
                    raise self._removed()
                case errno.E2BIG:
                    raise TooLarge("too_large", f"the next message has more than {room:,} octets")
                case errno.EACCES:
                    raise self._denied()
                case number:
                    raise LocalQueueError("refused", f"msgrcv: {os.strerror(number)}")

    def remove(self) -> None:
        """Remove the queue with its messages. Raises LocalQueueError."""
        try:
            self._open.remove()
        except sysv_ipc.ExistentialError:
            return
        except sysv_ipc.PermissionsError:
            raise self._denied() from None

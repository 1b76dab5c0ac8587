"""Local queues, as the kernel has them.

All calls return at once (IPC_NOWAIT): one that waits can only be ended by a signal, and a thread inside `msgrcv`
would take a message out while nothing may be taken (docs/sysv.md 3.4). Whoever has to wait sleeps, and asks again.

`sysv_ipc` makes, finds, measures and removes queues. Sending and receiving are our own calls: the library sends no
`mtype` beyond 2^31-1, and receives into memory that dies with the process, but the message must come straight into the
journal (3.2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

import sysv_ipc

from services.sysv.settings import LARGEST_BODY, format_key

READ, WRITE = (
    0o400,
    0o200,
)  # what is asked for when a queue is opened; the kernel looks at our part of the mode
IPC_NOWAIT = 0o4000
MSG_COPY = 0o40000  # look at the message at a place, and leave it there (Linux 3.8)
MSGMAX = Path("/proc/sys/kernel/msgmax")
ALL_QUEUES = Path("/proc/sysvipc/msg")
MTYPE = ctypes.sizeof(ctypes.c_long)  # octets before the body, in the machine's own order
MAX_MTYPE = (1 << 8 * MTYPE - 1) - 1  # that fits there

_libc = ctypes.CDLL(None, use_errno=True)
_libc.msgsnd.restype = ctypes.c_int
_libc.msgsnd.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int)
_libc.msgrcv.restype = ctypes.c_ssize_t
_libc.msgrcv.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long, ctypes.c_int)


class LocalQueueError(Exception):
    """The local queue cannot be used as it is; `reason` is a stable label."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Gone(LocalQueueError):
    """It was removed: open it again."""


class TooLarge(LocalQueueError):
    """A message does not fit: its octets, or its type. It stays where it is."""


def msgmax() -> int:
    """The largest body that any queue takes now, in octets."""
    return int(MSGMAX.read_text())


class LocalQueue:
    """The queue of one key. `rights`: READ or WRITE, whichever its mapping needs."""

    def __init__(self, key: int, rights: int, mode: int = 0o600, *, create: bool = True) -> None:
        self.key = key
        self._made: int | None = None  # id of the last one that we made
        self._rights = rights
        self._mode = mode
        self._create = create
        self._queue: sysv_ipc.MessageQueue | None = None

    def open(self) -> None:
        """Finds it, or makes it. Raises LocalQueueError: denied, missing, refused."""
        self._queue = self._find()
        while self._queue is None:
            self._make()
            self._queue = self._find()

    @property
    def is_ours(self) -> bool:
        """We have made it; with this key there may be another one since."""
        return self._queue is not None and self._queue.id == self._made

    def _find(self) -> sysv_ipc.MessageQueue | None:
        try:
            return sysv_ipc.MessageQueue(self.key, 0, self._rights, LARGEST_BODY)
        except sysv_ipc.ExistentialError:
            return None
        except sysv_ipc.PermissionsError:
            raise self._denied() from None

    def _make(self) -> None:
        """It is looked for again afterwards, whoever has made it: its mode may not be enough for us."""
        if not self._create:
            raise LocalQueueError("missing", f"there is no local queue with key {format_key(self.key)}")
        try:
            self._made = sysv_ipc.MessageQueue(self.key, sysv_ipc.IPC_CREX, self._mode, LARGEST_BODY).id
        except sysv_ipc.ExistentialError:
            return  # somebody was faster
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            text = f"the local queue with key {format_key(self.key)} cannot be made: {why}"
            raise LocalQueueError("refused", text) from None

    def _denied(self) -> LocalQueueError:
        what = "read" if self._rights == READ else "written"
        text = f"the local queue with key {format_key(self.key)} may not be {what} by uid {os.geteuid()}"
        return LocalQueueError("denied", f"{text}{self._whose()}")

    def _whose(self) -> str:
        """': it belongs to uid 0 and has mode 0600', if the kernel says so."""
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
            raise Gone("removed", f"the local queue with key {format_key(self.key)} is not open")
        return self._queue

    def limit(self) -> int:
        """The largest body that this queue takes now: min(msgmax, msg_qbytes). Raises LocalQueueError."""
        try:
            return min(msgmax(), int(self._open.max_size))
        except sysv_ipc.ExistentialError:
            raise self._gone() from None
        except (
            sysv_ipc.PermissionsError
        ):  # to ask takes the right to read; what we may only fill is not asked
            return msgmax()

    def check(self, size: int) -> int:
        """The same as `limit`. Raises TooLarge for a body that has more octets, LocalQueueError."""
        limit = self.limit()
        if size > limit:
            raise TooLarge("unencodable", f"{size:,} octets, and the local queue takes {limit:,}")
        return limit

    def is_there(self) -> bool:
        """Whether it has not been removed. Raises nothing: to ask how it is takes a right that we may not have."""
        try:
            return self._queue is not None and self._queue.current_messages >= 0
        except sysv_ipc.ExistentialError:
            return False
        except sysv_ipc.PermissionsError:
            return True

    def waiting(self) -> int:
        """How many messages are in it. Raises LocalQueueError."""
        try:
            return int(self._open.current_messages)
        except sysv_ipc.ExistentialError:
            raise self._gone() from None
        except sysv_ipc.PermissionsError:
            raise self._denied() from None

    def _gone(self) -> Gone:
        return Gone("removed", f"the local queue with key {format_key(self.key)} was removed")

    def send(self, body: bytes, mtype: int) -> bool:
        """False: it is full. Raises Gone, TooLarge, LocalQueueError."""
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
                    raise self._gone()
                case errno.EINVAL:  # the body exceeds msgmax, or the queue was removed before
                    self.check(len(body))
                    raise self._gone()
                case errno.EACCES:
                    raise self._denied()
                case number:
                    raise LocalQueueError("refused", f"msgsnd: {os.strerror(number)}")
        return True

    def receive(self, address: int, room: int) -> int | None:
        """Takes the next message: mtype to `address`, the body behind it; answers its size, None if there is none.

        Raises TooLarge for a body of more than `room` octets, Gone, LocalQueueError.
        """
        return self._msgrcv(address, room, IPC_NOWAIT)

    def look(self, address: int, room: int) -> int | None:
        """The same, but the message stays. None also where the kernel cannot do that, or not for this message."""
        try:
            return self._msgrcv(address, room, IPC_NOWAIT | MSG_COPY)
        except Gone:  # EINVAL may also mean that the message is larger than msgmax is now
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
                    raise self._gone()
                case errno.E2BIG:
                    raise TooLarge("too_large", f"the next message has more than {room:,} octets")
                case errno.EACCES:
                    raise self._denied()
                case number:
                    raise LocalQueueError("refused", f"msgrcv: {os.strerror(number)}")

    def remove(self) -> None:
        """With all that is in it. Raises LocalQueueError."""
        try:
            self._open.remove()
        except sysv_ipc.ExistentialError:
            return
        except sysv_ipc.PermissionsError:
            raise self._denied() from None

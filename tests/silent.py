"""A private machine of a test whose name server is silent until the test makes it answer: name lookups hang.

The machine is a thread with a network, an /etc/resolv.conf and an /etc/hosts of its own, where `six.test` is ::1. Its
threads and processes run on that machine, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import subprocess
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import uvloop

HOSTS = """\
127.0.0.1 localhost
::1 six.test
"""
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
RESOLV_CONF = """\
nameserver 127.0.0.1
options timeout:30 attempts:5
search .
"""
HEADER = struct.Struct("!6H")  # id, flags, questions, answers, authorities, additional
ANSWER, NO_SUCH_NAME = 0x8180, 0x8183  # flags
TYPE_A = 1
QUIET_S = 0.2


class NameServer:
    """The machine's name server. `asked`: the names in its queries."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self._addresses: Mapping[str, str] | None = None
        self._unanswered: list[tuple[bytes, Any]] = []
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.bind(("127.0.0.1", 53))
        self._thread = Thread(target=self._listen)
        self._thread.start()

    def speak(self, **addresses: str) -> None:
        """Answer from now on, including earlier queries: only these names exist."""
        self._addresses = addresses
        self._nudge()

    def close(self) -> None:
        """Answer the remaining queries, and end once there are no more for a while."""
        self._sock.settimeout(QUIET_S)
        self.speak()
        self._thread.join()
        self._sock.close()

    def _nudge(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"", self._sock.getsockname())

    def _listen(self) -> None:
        with contextlib.suppress(TimeoutError):
            while True:
                data, sender = self._sock.recvfrom(512)
                if data:
                    self.asked.add(_name(data))
                    self._unanswered.append((data, sender))
                if self._addresses is not None:
                    self._answer(self._addresses)

    def _answer(self, addresses: Mapping[str, str]) -> None:
        for question, asker in self._unanswered:
            self._sock.sendto(_answer(question, addresses.get(_name(question))), asker)
        self._unanswered.clear()


def _labels(question: bytes) -> Iterator[bytes]:
    at = HEADER.size
    while size := question[at]:
        yield question[at + 1 : at + 1 + size]
        at += 1 + size


def _name(question: bytes) -> str:
    return b".".join(_labels(question)).decode()


def _answer(question: bytes, address: str | None) -> bytes:
    """Return the answer to a query; for other records than IPv4 addresses, an empty one."""
    number = HEADER.unpack_from(question)[0]
    end = HEADER.size + sum(1 + len(label) for label in _labels(question)) + 1
    copy = question[HEADER.size : end + 4]
    is_there = address is not None and question[end : end + 2] == TYPE_A.to_bytes(2, "big")
    flags = NO_SUCH_NAME if address is None else ANSWER
    found = struct.pack("!HHHIH", 0xC00C, TYPE_A, 1, 0, 4) + socket.inet_aton(address or "0.0.0.0")
    return HEADER.pack(number, flags, 1, int(is_there), 0, 0) + copy + found * is_there


def on_silent_machine(scenario: Callable[[NameServer], Coroutine[Any, Any, None]], folder: Path) -> None:
    """Run a scenario on the machine, in a loop of uvloop. `folder`: for files of the machine."""
    with ThreadPoolExecutor(1) as threads:  # the machine ends with the last of its threads
        threads.submit(_run, scenario, folder).result()


def _run(scenario: Callable[[NameServer], Coroutine[Any, Any, None]], folder: Path) -> None:
    _unshare(CLONE_NEWNS | CLONE_NEWNET)
    subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
    subprocess.run(("mount", "--make-rprivate", "/"), check=True)
    for name, text in (("resolv.conf", RESOLV_CONF), ("hosts", HOSTS)):
        (folder / name).write_text(text)
        subprocess.run(("mount", "--bind", str(folder / name), f"/etc/{name}"), check=True)
    uvloop.run(_with_names(scenario))


async def _with_names(scenario: Callable[[NameServer], Coroutine[Any, Any, None]]) -> None:
    names = NameServer()
    try:
        await scenario(names)
    finally:  # before the loop ends, as it would wait for its own lookups
        names.close()


def _unshare(flags: int) -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(flags):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

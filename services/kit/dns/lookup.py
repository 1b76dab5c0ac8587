"""Names of machines, looked up by the system in threads: it blocks, for half a minute if a name server is silent.

Not `loop.getaddrinfo`: that of uvloop has room for two look-ups, and whatever else asks waits behind two that hang.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import dataclass, field
from threading import Lock, Thread

from services.kit.dns.socket_connect import Address

MAX_LOOKUPS = 64  # look-ups at once, each a thread
IN_LINE_S = 3.0  # how long a name waits for others to end before it is refused

ResolvedAddress = tuple[int, Address]  # the family and the address
Answer = list[ResolvedAddress] | OSError


async def resolve(host: str, port: int) -> list[ResolvedAddress]:
    """All places behind a name, or the one that an address is, each once.

    Names that hang hold up no others, until there are MOST of them. Raises OSError, and UnicodeError for what is no
    name.
    """
    if "\0" in host:  # where C would end it
        raise UnicodeError("there is a NUL in the name")
    try:
        return _asked(host, port, socket.AI_NUMERICHOST)
    except socket.gaierror:
        if ":" in host:  # an address with a scope that there is not: no name
            raise
    found = await _look_ups.ask(host.encode("idna"))
    return [(family, (address[0], port, *address[2:])) for family, address in found]


def _asked(host: str | bytes, port: int, flags: int = 0) -> list[ResolvedAddress]:
    """Asks the system, and blocks."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=flags)
    return list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))


@dataclass(slots=True)
class _Question:
    """A name that is looked up, or will be, and who waits for what is found."""

    has_begun: bool = False
    waiting: set[asyncio.Future[Answer]] = field(default_factory=set)


class NameResolver:
    """At most `most` at once, one of a name: who asks for the same gets the same answer.

    Nobody waits for the threads: neither those who give up asking, nor the process when it ends. May be asked from
    several loops.
    """

    def __init__(self, most: int = MAX_LOOKUPS, in_line_s: float = IN_LINE_S) -> None:
        self._most = most
        self._in_line_s = in_line_s
        self._lock = Lock()  # for all that follows
        self._questions: dict[bytes, _Question] = {}  # by name, in the order in which they came
        self._threads = 0

    async def ask(self, name: bytes) -> list[ResolvedAddress]:
        """Places with port 0. Raises OSError."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Answer] = loop.create_future()
        with self._lock:
            question = self._question(name)
            question.waiting.add(waiter)
        refusal = loop.call_later(self._in_line_s, self._refuse, question, waiter)
        try:
            answer = await waiter
        finally:
            refusal.cancel()
            with self._lock:
                self._leave(name, question, waiter)
        if isinstance(answer, OSError):
            raise type(answer)(*answer.args)  # the others who wait raise it, too
        return answer

    def _question(self, name: bytes) -> _Question:
        """That of the name, begun if there is room for it."""
        question = self._questions.get(name)
        if question is None:
            question = _Question()
            if self._threads < self._most:
                self._begin(name)
                question.has_begun = True
            self._questions[name] = question
        return question

    def _begin(self, name: bytes) -> None:
        try:
            Thread(target=self._work, args=(name,), name="look-up", daemon=True).start()
        except RuntimeError as error:
            raise OSError(f"names cannot be looked up now: {error}") from None
        self._threads += 1

    def _refuse(self, question: _Question, waiter: asyncio.Future[Answer]) -> None:
        if not question.has_begun:
            others = f"{self._most} other names are being looked up"
            _settle(waiter, OSError(f"{others}, and it was not its turn within {self._in_line_s:g} s"))

    def _leave(self, name: bytes, question: _Question, waiter: asyncio.Future[Answer]) -> None:
        question.waiting.discard(waiter)
        if not question.waiting and not question.has_begun:
            del self._questions[name]

    def _work(self, name: bytes | None) -> None:
        """In a thread: this name, and whatever is in line then."""
        while name is not None:
            answer: Answer
            try:
                answer = _asked(name, 0)
            except OSError as error:
                answer = error
            except Exception as error:  # noqa: BLE001  who waits is told, or would wait for ever
                answer = OSError(f"the name cannot be looked up: {error!r}")
            name = self._answered(name, answer)

    def _answered(self, name: bytes, answer: Answer) -> bytes | None:
        """Tells who waits; returns the next name to look up, if there is one."""
        with self._lock:
            waiting = list(self._questions.pop(name).waiting)
            following = next((n for n, question in self._questions.items() if not question.has_begun), None)
            if following is None:
                self._threads -= 1
            else:
                self._questions[following].has_begun = True
        for waiter in waiting:
            with contextlib.suppress(RuntimeError):  # its loop has been closed
                waiter.get_loop().call_soon_threadsafe(_settle, waiter, answer)
        return following


def _settle(waiter: asyncio.Future[Answer], answer: Answer) -> None:
    if not waiter.done():
        waiter.set_result(answer)


_look_ups = NameResolver()

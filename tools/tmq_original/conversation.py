"""Make calls to a server, as plain clients do, and name its answers."""

from __future__ import annotations

import hashlib
import socket
import struct
import time
from collections.abc import Sequence

from tools.tmq_original.calls import BODY_LIMIT, NAME_LIMIT, Call

Address = tuple[str, int]

SILENCE_S = 1.0  # without an answer: "no answer"
RETURN_S = 5.0  # for messages to return after a connection was lost
CODES = {
    name: bytes([code])
    for code, name in enumerate(
        ("CREATE", "DELETE", "OPEN", "CLOSE", "ENQ", "DNQ", "TS", "TE", "TA", "SELECT")
    )
}
NAMED = ("CREATE", "DELETE", "OPEN")
NIL = b"<NIL>" + b"0" * 27
MQID_BYTES = 64
EMPTY = "{empty}"
BODIES = {
    EMPTY: b"",
    "{all bytes}": bytes(range(256)),
    "{1 MiB}": bytes(BODY_LIMIT),
    "{1 MiB + 1}": bytes(BODY_LIMIT + 1),
}
UNSENT = {"{16 MiB + 1, without its body}": (16 << 20) + 1}
RETRIED = ("no message", "0")  # answers that change once messages have returned

NO_ANSWER, CLOSED, REFUSED = "no answer", "closed", "connection refused"


class Conversation:
    """One call's two connections, and names of queues that no other call uses."""

    def __init__(self, address: Address, number: int) -> None:
        self._address = address
        self._number = number
        self._left = False
        self._sockets: dict[str, socket.socket] = {}
        self.ask("A", "CREATE", "q")
        self.ask("A", "OPEN", "q")
        self._connection("B")

    def close(self) -> None:
        for sock in self._sockets.values():
            sock.close()

    def ask(self, who: str, operation: str, *arguments: str) -> str:
        """Execute one step. Return the answer in words."""
        if operation in ("LEAVE", "RESET"):
            self._leave(who, reset=operation == "RESET")
            return ""
        until = time.monotonic() + RETURN_S
        while True:
            answer = self._ask_once(who, operation, *arguments)
            if not self._left or operation not in ("DNQ", "SELECT") or answer not in RETRIED:
                return answer
            if time.monotonic() > until:
                return answer
            time.sleep(0.05)

    def _ask_once(self, who: str, operation: str, *arguments: str) -> str:
        try:
            sock = self._connection(who)
            if operation == "SEND":
                sock.sendall(bytes.fromhex(arguments[0]))
                return _nothing(sock)
            sock.sendall(self._request(operation, *arguments))
            return _answer(sock, operation)
        except TimeoutError:
            return NO_ANSWER
        except ConnectionRefusedError:
            return REFUSED
        except (ConnectionError, EOFError):
            return CLOSED

    def _connection(self, who: str) -> socket.socket:
        if who not in self._sockets:
            self._sockets[who] = socket.create_connection(self._address)
            self._sockets[who].settimeout(SILENCE_S)
        return self._sockets[who]

    def _leave(self, who: str, *, reset: bool) -> None:
        sock = self._sockets.pop(who)
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        self._left = True

    def _request(self, operation: str, name: str = "", body: str = "") -> bytes:
        code = CODES[operation]
        if not name:
            return code
        if operation in NAMED:
            return code + _counted(self._name(name))
        request = code + (NIL * 2 if name == "nil" else self._mqid(name))
        if operation != "ENQ":
            return request
        if body in UNSENT:
            return request + UNSENT[body].to_bytes(4, "big")
        return request + _counted(BODIES.get(body, body.encode()))

    def _mqid(self, name: str) -> bytes:
        return hashlib.sha256(self._name(name)).hexdigest().encode()

    def _name(self, name: str) -> bytes:
        if name == EMPTY:
            return b""
        own = b"compared-%d-%s" % (self._number, name.encode())
        if name.startswith("{"):
            return own.ljust(NAME_LIMIT if name == "{255 bytes}" else NAME_LIMIT + 1, b".")
        return own


def answers(address: Address, calls: Sequence[Call]) -> list[str]:
    """Return the server's answer to the last step of each call."""
    conversations = []
    found = []
    for number, call in enumerate(calls):
        conversation = Conversation(address, number)
        conversations.append(conversation)  # kept open: some disconnections crash the original server
        for step in _steps(call):
            answer = conversation.ask(*step)
        found.append(answer)
    for conversation in conversations:
        conversation.close()
    return found


def _steps(call: Call) -> list[list[str]]:
    """Split the steps of a call: which connection, operation, queue, body."""
    steps = []
    for step in _apart(call.steps, ", "):
        words = _apart(step, " ")
        steps.append(words if words[0] == "B" else ["A", *words])
    return steps


def _apart(text: str, separator: str) -> list[str]:
    """Split a text at separators that are not in braces."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if not depth and text.startswith(separator, place):
            parts.append(text[start:place])
            start = place + len(separator)
    return [*parts, text[start:]]


def _counted(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _read(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        if not (chunk := sock.recv(size - len(data))):
            raise EOFError
        data += chunk
    return bytes(data)


def _nothing(sock: socket.socket) -> str:
    return CLOSED if not sock.recv(1) else "an answer"


def _answer(sock: socket.socket, operation: str) -> str:
    match operation:
        case "OPEN":
            return "nil" if _read(sock, MQID_BYTES) == NIL * 2 else "MQID"
        case "SELECT":
            return str(int.from_bytes(_read(sock, 4), "big", signed=True))
        case "DNQ":
            size = int.from_bytes(_read(sock, 4), "big", signed=True)
            return "no message" if size == -1 else _message(_read(sock, size))
        case _:
            return str(_read(sock, 1)[0])


def _message(body: bytes) -> str:
    named = {data: name for name, data in BODIES.items()}
    return f"message {named.get(body) or body.decode()}"

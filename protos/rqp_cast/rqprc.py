"""The file `.rqprc`: the machines to ask, one per line (rqp_cast.md 1.1)."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from protos.rqp_cast.wire import REQUEST_PORT, is_address

MAX_NAME = 253  # characters, as in DNS
MAX_PORT = 65_535

_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_PORT = re.compile(r"[0-9]{1,5}")
_NUMBERS = re.compile(r"[0-9.]+")  # a name of digits and dots alone is meant as an address


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that may have the queue: a DNS name or an IPv4 address, and its request_port."""

    name: str  # a DNS name or an IPv4 address
    request_port: int = REQUEST_PORT  # UDP

    def __str__(self) -> str:
        return self.name if self.request_port == REQUEST_PORT else f"{self.name}:{self.request_port}"


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that names no machine: its number from 1, its text, and what is wrong with it."""

    number: int  # from 1
    text: str  # without spaces around it
    problem: str  # what is wrong with it


@dataclass(frozen=True, slots=True)
class Rqprc:
    """The content of a file: each machine once, in the file's order, and the lines that were skipped."""

    hosts: tuple[Host, ...]  # each machine once, in the file's order
    bad_lines: tuple[BadLine, ...]  # lines that were skipped


def parse_rqprc(
    text: str, standard_port: int = REQUEST_PORT, read: Callable[[str, int], Host | str] | None = None
) -> Rqprc:
    """Parse a whole file and skip bad lines.

    Args:
        text: The file's content.
        standard_port: Of lines that name none.
        read: Parses one machine with that port, or returns what is wrong; None: `read_host`.
    """
    read = read or read_host
    hosts: dict[Host, None] = {}
    bad_lines = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        words = line.partition("#")[0].split()
        problem = "only one machine may stand on a line" if len(words) > 1 else None
        if len(words) == 1:
            found = read(words[0], standard_port)
            if isinstance(found, Host):
                hosts[found] = None
            else:
                problem = found
        if problem is not None:
            bad_lines.append(BadLine(number, line.strip(), problem))
    return Rqprc(tuple(hosts), tuple(bad_lines))


def read_host(word: str, standard_port: int = REQUEST_PORT) -> Host | str:
    """Parse `host` or `host:port`; return the machine, or what is wrong."""
    name, colon, port = word.partition(":")
    if ":" in port:
        return "an IPv6 address: RQP/cast has room for IPv4 only"
    if colon and not (_PORT.fullmatch(port) and 0 < int(port) <= MAX_PORT):
        return f"a port is a number from 1 to {MAX_PORT}"
    problem = _problem(name)
    return problem or Host(name, int(port) if colon else standard_port)


def _problem(name: str) -> str | None:
    if is_address(name):
        return None
    if _NUMBERS.fullmatch(name):
        return "not an IPv4 address"
    plain = name.removesuffix(".")
    if len(plain) > MAX_NAME or not all(map(_LABEL.fullmatch, plain.split("."))):
        return "neither a DNS name nor an IPv4 address"
    return None

"""What a process tells of itself, and does, when somebody asks it through the store: its connections, one by one."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any

from services.kit.metrics.metrics import Item, Topic
from services.kit.net.connection import Connection
from services.kit.net.connections import Connections
from services.kit.net.refusals import Refusal
from services.kit.net.stream import Phase
from services.kit.session.session import Peer

MAX_TEXT = 256  # characters of what a certificate says, or an operator
TALKING = (Phase.OPENING, Phase.OPEN)


class Closing(enum.StrEnum):
    """What `close` has done."""

    CLOSED = "closed"  # what was written is flushed, then FIN
    RESET = "reset"  # it was being closed already, or was not open yet


class ConnectionInspector:
    """All connections of a process, and the topics `connections` and `close`."""

    def __init__(self, groups: Callable[[], Sequence[Connections]]) -> None:
        """groups: the listeners and diallers that there are now."""
        self._groups = groups

    @property
    def topics(self) -> dict[str, Topic]:
        return {"connections": self.connections, "close": self.close}

    def about(self) -> dict[str, Any]:
        """For the directory of processes: where it listens, and how many connections it has."""
        groups = self._groups()
        return {
            "listeners": [
                {"name": group.name, "address": group.address}
                for group in groups
                if group.address is not None
            ],
            "connections": sum(len(group.connections) for group in groups),
        }

    def connections(self, args: Mapping[str, Any]) -> Iterator[Item]:
        """In the order in which they were made: those behind `after`, a number; of one `listener`, or all; with
        `named`, only those whose peers have said who they are.

        Octets are of the protocol, without TLS; `unsentOctets` wait here, `heldOctets` are of unfinished requests.
        """
        after, listener, named = count_argument(args, "after"), args.get("listener"), bool(args.get("named"))
        groups = [group for group in self._groups() if listener in (None, group.name)]
        found = merge(*(_numbered(group) for group in groups))
        return (
            _described(name, connection)
            for at, name, connection in found
            if at > after
            and connection.phase is not Phase.GONE
            and (not named or connection.name is not None)
        )

    def close(self, args: Mapping[str, Any]) -> list[Item]:
        """The connection with this `id`, as `connections` says it; no item: there is none."""
        wanted = str(args.get("id"))
        for connection in (each for group in self._groups() for each in group.connections):
            if wanted.endswith(f".{connection.number}") and connection.conn == wanted:
                return [{"id": wanted, "was": _close(connection, str(args.get("by", "")))}]
        return []


def count_argument(args: Mapping[str, Any], name: str) -> int:
    """Of the arguments, 0 if it is not among them. Raises ValueError."""
    value = args.get(name, 0)
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is a number, 0 or more")
    return value


def _numbered(group: Connections) -> Iterator[tuple[int, str, Connection]]:
    """Of those that there are now."""
    return ((connection.number, group.name, connection) for connection in list(group.connections))


def _close(connection: Connection, by: str) -> Closing:
    is_open = connection.phase is Phase.OPEN
    connection.refuse(Refusal.CLOSED_BY_OPERATOR, by[:MAX_TEXT])
    if is_open:
        connection.close()
        return Closing.CLOSED
    connection.abort()
    return Closing.RESET


def _described(listener: str, connection: Connection) -> Item:
    return {
        "id": connection.conn,
        "number": connection.number,
        "listener": listener,
        **describe_peer(connection.peer),
        "name": None if connection.name is None else connection.name[:MAX_TEXT],
        "phase": connection.phase.name.lower(),
        "ageMs": connection.age_ms,
        "receivedOctets": connection.received,
        "sentOctets": connection.sent,
        "unsentOctets": connection.backlog() if connection.phase in TALKING else 0,
        "heldOctets": connection.held,
    }


def describe_peer(peer: Peer) -> Item:
    """Who is at the other end."""
    certificate = peer.certificate
    return {"peer": str(peer), "certificate": None if certificate is None else certificate[:MAX_TEXT]}

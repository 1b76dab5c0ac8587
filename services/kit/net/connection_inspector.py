"""List and close the connections of a process, on requests that arrive through the store."""

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

MAX_TEXT = 256  # characters of a certificate's or an operator's name


class Closing(enum.StrEnum):
    """The outcome of `close`."""

    CLOSED = "closed"  # output is flushed, then FIN is sent
    RESET = "reset"  # the connection was closing already, or not open yet


class ConnectionInspector:
    """The connections of a process, and the topics `connections` and `close`."""

    def __init__(self, groups: Callable[[], Sequence[Connections]]) -> None:
        """Take a function that returns the current listeners and diallers."""
        self._groups = groups

    @property
    def topics(self) -> dict[str, Topic]:
        """Return the questions that this process answers, by name."""
        return {"connections": self.connections, "close": self.close}

    def about(self) -> dict[str, Any]:
        """Return the listeners and the number of connections, for the directory of processes."""
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
        """Describe connections in the order of their numbers.

        `after`: skip numbers up to this one; `listener`: only this one's; `named`: only peers that named themselves.
        Octets are the protocol's, without TLS; `unsentOctets` wait in this process, `heldOctets` are of unfinished
        requests. Raises ValueError for bad arguments.
        """
        after, listener, named = count_argument(args, "after"), args.get("listener"), bool(args.get("named"))
        groups = [group for group in self._groups() if listener in (None, group.name)]
        found = merge(*(_numbered(group) for group in groups))
        return (
            _described(name, connection)
            for at, name, connection in found
            if at > after
            and connection.phase is not Phase.CLOSED
            and (not named or connection.name is not None)
        )

    def close(self, args: Mapping[str, Any]) -> list[Item]:
        """Close the connection with this `id`, as `connections` shows it; return nothing if it does not exist."""
        wanted = str(args.get("id"))
        for connection in (each for group in self._groups() for each in group.connections):
            if wanted.endswith(f".{connection.number}") and connection.conn == wanted:
                return [{"id": wanted, "was": _close(connection, str(args.get("by", "")))}]
        return []


def count_argument(args: Mapping[str, Any], name: str) -> int:
    """Return an argument that is a count, 0 if it is missing. Raises ValueError."""
    value = args.get(name, 0)
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} must be a whole number, 0 or more")
    return value


def _numbered(group: Connections) -> Iterator[tuple[int, str, Connection]]:
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
    has_backlog = connection.phase in (Phase.OPENING, Phase.OPEN)
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
        "unsentOctets": connection.backlog() if has_backlog else 0,
        "heldOctets": connection.held,
    }


def describe_peer(peer: Peer) -> Item:
    """Return the address of a peer and the name in its certificate."""
    certificate = peer.certificate
    return {"peer": str(peer), "certificate": None if certificate is None else certificate[:MAX_TEXT]}

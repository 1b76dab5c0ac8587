"""Decide which queues are internal, that is used by Penstock for its own work.

A ring node keeps messages to send in `ring/<group>/<node>`. The node alone declares such a queue, puts messages in and
takes them out. No other client has access; the administrator may inspect the queue, and delete it after its node.
"""

from __future__ import annotations

import re

from services.store.model.access_lists import Access
from services.store.model.admission import Admission
from services.store.model.client import Client

PREFIX = "ring/"  # of the names of internal queues
RESERVED = f"names that begin with {PREFIX} are reserved for the queues of ring nodes"
NODE_OWNER = "edge:ring"  # of queues that the ring's edge declares
KEEPER = Client("ring node")  # the only client of internal queues


class KeeperOnly(Admission):
    """An admission check that admits only the keeper of internal queues."""

    __slots__ = ()

    def problem(self, client: Client) -> str:
        """Return why the client is denied access, or '' for the keeper."""
        return "" if client is KEEPER else RESERVED


KEEPER_ONLY = KeeperOnly(Access())


def is_internal(name: str) -> bool:
    """Return whether a queue of this name is internal."""
    return name.startswith(PREFIX)


def is_of_node(name: str, owner: str) -> bool:
    """Return whether a ring node made this queue; older versions let clients use names that begin the same."""
    return owner == NODE_OWNER and re.fullmatch(rf"{PREFIX}\d+/.+", name, re.DOTALL) is not None

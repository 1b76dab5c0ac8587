"""Internal queues: those in which Penstock keeps its own work. This is the one place that decides which they are.

A ring node keeps in `ring/<group>/<node>` what it has to send. Such a queue is declared by its node alone, and only the
node puts messages in and takes them out: no client of any edge does, nor the administrator, who may look at it, and
delete it once its node is gone.
"""

from __future__ import annotations

import re

from services.store.model.access_lists import Access
from services.store.model.admission import Admission
from services.store.model.client import Client

PREFIX = "ring/"  # of the names of internal queues
RESERVED = f"names that begin with {PREFIX} are for the queues of ring nodes"
NODE_OWNER = "edge:ring"  # of queues that the ring's edge declares
KEEPER = Client("ring node")  # the only client of internal queues


class KeeperOnly(Admission):
    """Lets in the keeper of internal queues, and no one else."""

    __slots__ = ()

    def problem(self, client: Client) -> str:
        return "" if client is KEEPER else RESERVED


KEEPER_ONLY = KeeperOnly(Access())


def is_internal(name: str) -> bool:
    """Return whether a queue of this name belongs to Penstock itself."""
    return name.startswith(PREFIX)


def is_of_node(name: str, owner: str) -> bool:
    """Return whether a ring node made this queue. Clients of older versions could make others that begin like it."""
    return owner == NODE_OWNER and re.fullmatch(rf"{PREFIX}\d+/.+", name, re.DOTALL) is not None

"""List the processes that use a store, and ask them questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.store.catalogue.registry import Registry
from services.store.processes.presence import Process, running
from services.store.processes.rpc_client import NOTHING, WAIT_S, Answers, Wanted, inquire
from services.store.redis.connect import Connector


class ProcessDirectory:
    """The processes that use one store. The caller need not be one of them."""

    def __init__(self, connector: Connector, registry: Registry) -> None:
        self._connector = connector
        self._registry = registry

    async def running(self) -> list[Process]:
        """Return the running processes by edge and name. Raises StoreUnavailable."""
        return await running(self._registry)

    async def inquire(
        self,
        topic: str,
        args: Mapping[str, Any] = NOTHING,
        wait_s: float = WAIT_S,
        *,
        edge: str = "",
        process: str = "",
    ) -> Answers:
        """Ask all processes that know the topic, or those of one edge, or one by name.

        An argument `limit` bounds the items per answer. Raises StoreUnavailable; ValueError for arguments that are too
        large.
        """
        asked = Wanted(topic, dict(args), edge, process)
        return await inquire(self._connector, self._registry, asked, wait_s)

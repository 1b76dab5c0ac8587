"""The processes that look after a store: which there are, and what they say when they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.store.catalogue.registry import Registry
from services.store.processes.presence import Process, running
from services.store.processes.rpc_client import NOTHING, WAIT_S, Answers, Wanted, inquire
from services.store.redis.connect import Connector


class Company:
    """A store's part for whoever looks at the others, and need not be one of them."""

    connector: Connector
    registry: Registry

    async def processes(self) -> list[Process]:
        """The processes that look after this store now. Raises StoreUnavailable."""
        return await running(self.registry)

    async def inquire(
        self,
        topic: str,
        args: Mapping[str, Any] = NOTHING,
        wait_s: float = WAIT_S,
        *,
        edge: str = "",
        process: str = "",
    ) -> Answers:
        """Asks all of them that know the topic, or those of one edge, or one, by its name in `processes`.

        `limit` among the arguments is how many items each answers at most. Raises StoreUnavailable; ValueError for
        arguments that are too large.
        """
        asked = Wanted(topic, dict(args), edge, process)
        return await inquire(self.connector, self.registry, asked, wait_s)

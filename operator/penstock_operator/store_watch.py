"""Whether the store can be used, and what to do when it can again: an empty one is set up, and all is looked at."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from penstock_operator.metrics import Metrics
from services.store import Store, StoreError
from services.store.errors import DatasetLost, NotInitialised, StoreUnavailable

log = logging.getLogger(__name__)

LOOK_S = 1.0


class StoreWatch:
    """`on_change` is called when the store can be used again, or holds other data."""

    def __init__(
        self, store: Store, on_change: Callable[[], None], metrics: Metrics, *, accept_loss: bool
    ) -> None:
        self.trouble: StoreError | None = StoreUnavailable("the store has not been asked yet")
        self._store = store
        self._on_change = on_change
        self._metrics = metrics
        self._accept_loss = accept_loss
        self._epoch = ""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        try:
            if self.trouble is not None:
                await self._set_up()
            epoch = await self._epoch_now()
            await self._look_at_domains()
        except StoreError as error:
            self._is_down(error)
            return
        if self.trouble is not None or epoch != self._epoch:
            self._is_up(epoch)

    async def _epoch_now(self) -> str:
        try:
            return await self._store.registry.epoch()
        except NotInitialised:
            if self._epoch:
                self._metrics.restored.inc()
                log.warning(
                    "the store came back empty: it is set up anew", extra={"action": "store_restored"}
                )
            await self._set_up()
            return await self._store.registry.epoch()

    async def _look_at_domains(self) -> None:
        """Raises DatasetLost: a part of the store is empty, as when one shard of a Cluster came back so."""
        for name in await self._store.registry.domains():
            if await self._store.look_at(name).epoch() == "":
                raise DatasetLost(
                    f"domain {name!r} is empty: restore it, or accept the loss (operator.acceptLoss)"
                )

    async def _set_up(self) -> None:
        """Functions of this version, a dataset if there is none, and what the store can promise now."""
        self._store.forget_all()
        await self._store.initialise(accept_loss=self._accept_loss)

    def _is_down(self, trouble: StoreError) -> None:
        self._metrics.store_up.set(0)
        if str(self.trouble) != str(trouble):
            log.warning("the store cannot be used: %s", trouble, extra={"action": "store_down"})
        was_up, self.trouble = self.trouble is None, trouble
        if was_up:
            self._on_change()

    def _is_up(self, epoch: str) -> None:
        self.trouble, self._epoch = None, epoch
        self._metrics.store_up.set(1)
        log.info("the store can be used", extra={"action": "store_up", "epoch": epoch})
        self._on_change()

"""Whether the store can be used, and what to do when it can again: an empty one is set up, and all is looked at."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from penstock_operator.cluster.resources import Key
from penstock_operator.documents.conditions import Ready, Reason, Verdict
from penstock_operator.metrics.metrics import Metrics
from services.store import Store, StoreError
from services.store.model import DatasetLost, NotInitialised, StoreUnavailable

log = logging.getLogger(__name__)

LOOK_S = 1.0
PROMISES_S = 10.0  # between two looks at what the store can promise


class StoreWatch:
    """`on_change` is called when the store can be used again, or holds other data, all of it or a domain.

    `holds` is told its data set then.
    """

    def __init__(
        self,
        store: Store,
        on_change: Callable[[], None],
        holds: Callable[[str], None],
        metrics: Metrics,
        *,
        accept_loss: bool,
    ) -> None:
        self._down: StoreError | None = StoreUnavailable("the store has not been asked yet")
        self._lost: frozenset[str] = (
            frozenset()
        )  # domains that are empty, as when one shard of a Cluster came back so
        self._refused: dict[Key, str] = {}  # what it could not do, though it answers: it may take no writes
        self._store = store
        self._on_change = on_change
        self._holds = holds
        self._metrics = metrics
        self._accept_loss = accept_loss
        self._epoch = ""
        self._promises_at = 0.0

    @property
    def trouble(self) -> StoreError | None:
        """Why the store, or a part of it, cannot be used now."""
        trouble = self.trouble_at(min(self._lost, default=""))
        refused = next(iter(self._refused.values()), None)
        return trouble or (None if refused is None else StoreUnavailable(refused))

    def trouble_at(self, domain: str) -> StoreError | None:
        """Why this part of it cannot be used now."""
        if self._down is None and domain in self._lost:
            return DatasetLost(_empty(domain))
        return self._down

    def verdict_at(self, domain: str) -> Verdict | None:
        """The same, as a Queue's status has it."""
        trouble = self.trouble_at(domain)
        if trouble is None:
            return None
        if isinstance(trouble, DatasetLost):
            return Verdict(Ready.NO, Reason.DATASET_LOST, str(trouble))
        return Verdict(Ready.UNKNOWN, Reason.STORE_UNAVAILABLE, str(trouble))

    def note(self, key: Key, refused: str) -> set[Key]:
        """What a look at it found the store not to do, '' = nothing; who may be looked at again, as it does now."""
        if refused and self._down is None:
            if not self._refused:
                log.warning("the store refuses: %s", refused, extra={"action": "store_refuses"})
            self._refused[key] = refused
            self._metrics.store_up.set(0)
        elif key in self._refused:
            others = {*self._refused} - {key}
            self._refused.clear()  # those that are refused again say so
            self._metrics.store_up.set(0 if self._down or self._lost else 1)
            log.info("the store does what it refused", extra={"action": "store_accepts"})
            return others
        return set()

    def forget(self, key: Key) -> None:
        """It is gone."""
        if self._refused.pop(key, None) is not None and not self._refused:
            self._metrics.store_up.set(0 if self._down or self._lost else 1)

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        try:
            if self._down is not None:
                await self._set_up()
            epoch, lost = await self._epoch_now(), await self._lost_domains()
            if lost and self._accept_loss:
                await self._set_up()
                lost = await self._lost_domains()
        except StoreError as error:
            self._is_down(error)
            return
        await self._look_for_replicas()
        if self._down is not None or (epoch, lost) != (self._epoch, self._lost):
            self._is_up(epoch, lost)

    async def _look_for_replicas(self) -> None:
        """Let Queues be looked at again once the store keeps ack levels that it did not keep before."""
        if time.monotonic() < self._promises_at + PROMISES_S:
            return
        self._promises_at = time.monotonic()
        try:
            if await self._store.promises.raise_levels():
                log.info(
                    "the store keeps stricter ack levels than before", extra={"action": "promises_raised"}
                )
                self._on_change()
        except StoreError as error:  # the next look says whether the store is away
            log.warning("what the store keeps is not known: %s", error, extra={"action": "promises_unknown"})

    async def _epoch_now(self) -> str:
        try:
            return await self._store.registry.epoch()
        except NotInitialised:
            await self._set_up()
            return await self._store.registry.epoch()

    async def _lost_domains(self) -> frozenset[str]:
        ready = await self._store.registry.domains()
        return frozenset([name for name in ready if await self._store.get_domain(name).epoch() == ""])

    async def _set_up(self) -> None:
        """Functions of this version, a dataset if there is none, and what the store can promise now."""
        self._store.catalogue.forget_all()
        try:
            await self._store.initialise(accept_loss=self._accept_loss)
        except DatasetLost:
            if not await self._lost_domains():  # else all but these is set up
                raise

    def _is_down(self, trouble: StoreError) -> None:
        self._metrics.store_up.set(0)
        if str(self._down) != str(trouble):
            log.warning("the store cannot be used: %s", trouble, extra={"action": "store_down"})
        self._refused.clear()
        was_up, self._down = self._down is None, trouble
        if was_up:
            self._on_change()

    def _is_up(self, epoch: str, lost: frozenset[str]) -> None:
        self._holds(_dataset(epoch))
        self._down, self._epoch, self._lost = None, epoch, lost
        self._metrics.store_up.set(0 if lost else 1)
        for name in sorted(lost):
            log.warning("%s", _empty(name), extra={"action": "domain_lost", "epoch": epoch})
        if not lost:
            log.info("the store can be used", extra={"action": "store_up", "epoch": epoch})
        self._on_change()


def _dataset(epoch: str) -> str:
    """It stays when the data goes on in a new generation."""
    return epoch.partition(".")[0]


def _empty(domain: str) -> str:
    return f"domain {domain!r} is empty: restore it, or accept the loss (operator.acceptLoss)"

"""Poll the store's availability; set up an empty store, and reconcile everything once the store is back."""

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

POLL_S = 1.0
PROMISES_S = 10.0  # between checks of the ack levels that the store supports


class StoreWatch:
    """The store's availability.

    on_change: called when the store or a domain becomes available or has other data. holds: called with the dataset.
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
        self._down: StoreError | None = StoreUnavailable("the store has not been polled yet")
        self._lost: frozenset[str] = frozenset()  # empty domains, such as a shard that lost its data
        self._refused: dict[Key, str] = {}  # writes that failed though the store answers
        self._store = store
        self._on_change = on_change
        self._holds = holds
        self._metrics = metrics
        self._accept_loss = accept_loss
        self._epoch = ""
        self._promises_at = 0.0

    @property
    def trouble(self) -> StoreError | None:
        """Return why the store or a domain is unavailable, or None."""
        trouble = self.trouble_at(min(self._lost, default=""))
        refused = next(iter(self._refused.values()), None)
        return trouble or (None if refused is None else StoreUnavailable(refused))

    def trouble_at(self, domain: str) -> StoreError | None:
        """Return why this domain is unavailable, or None."""
        if self._down is None and domain in self._lost:
            return DatasetLost(_empty(domain))
        return self._down

    def verdict_at(self, domain: str) -> Verdict | None:
        """Return the verdict for Queues of an unavailable domain, or None."""
        trouble = self.trouble_at(domain)
        if trouble is None:
            return None
        if isinstance(trouble, DatasetLost):
            return Verdict(Ready.NO, Reason.DATASET_LOST, str(trouble))
        return Verdict(Ready.UNKNOWN, Reason.STORE_UNAVAILABLE, str(trouble))

    def note(self, key: Key, refused: str) -> set[Key]:
        """Record whether the store refused to reconcile a key ('' = no); return the keys to retry now."""
        if refused and self._down is None:
            if not self._refused:
                log.warning("the store refuses writes: %s", refused, extra={"action": "store_refuses"})
            self._refused[key] = refused
            self._metrics.store_up.set(0)
        elif key in self._refused:
            others = {*self._refused} - {key}
            self._refused.clear()  # keys that fail again are added again
            self._metrics.store_up.set(0 if self._down or self._lost else 1)
            log.info("the store accepts writes again", extra={"action": "store_accepts"})
            return others
        return set()

    def forget(self, key: Key) -> None:
        """Drop a deleted resource."""
        if self._refused.pop(key, None) is not None and not self._refused:
            self._metrics.store_up.set(0 if self._down or self._lost else 1)

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            await self.poll()
            await asyncio.sleep(POLL_S)

    async def poll(self) -> None:
        """Poll the store once and set it up if necessary."""
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
        await self._check_ack_levels()
        if self._down is not None or (epoch, lost) != (self._epoch, self._lost):
            self._is_up(epoch, lost)

    async def _check_ack_levels(self) -> None:
        """Reconcile everything once the store supports stricter ack levels, such as after a replica has joined."""
        if time.monotonic() < self._promises_at + PROMISES_S:
            return
        self._promises_at = time.monotonic()
        try:
            if await self._store.promises.raise_levels():
                log.info(
                    "the store supports stricter ack levels than before", extra={"action": "promises_raised"}
                )
                self._on_change()
        except StoreError as error:  # the next poll shows whether the store is down
            log.warning(
                "the store's ack levels could not be checked: %s", error, extra={"action": "promises_unknown"}
            )

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
        """Load the functions, start a dataset if there is none, and record the ack levels."""
        self._store.catalogue.forget_all()
        try:
            await self._store.initialise(accept_loss=self._accept_loss)
        except DatasetLost:
            if not await self._lost_domains():  # other domains were set up
                raise

    def _is_down(self, trouble: StoreError) -> None:
        self._metrics.store_up.set(0)
        if str(self._down) != str(trouble):
            log.warning("the store is unavailable: %s", trouble, extra={"action": "store_down"})
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
            log.info("the store is available", extra={"action": "store_up", "epoch": epoch})
        self._on_change()


def _dataset(epoch: str) -> str:
    """Return the dataset's id without its generation."""
    return epoch.partition(".")[0]


def _empty(domain: str) -> str:
    return f"domain {domain!r} is empty: restore its data, or accept the loss (operator.acceptLoss)"

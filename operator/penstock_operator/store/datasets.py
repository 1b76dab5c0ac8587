"""Detect that the store came back with another dataset, also across restarts of the operator.

The dataset is recorded in a ConfigMap, since an operator that restarts while the store is empty has no other record.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from penstock_operator.cluster.api import Api, ApiError
from penstock_operator.metrics.metrics import Metrics

log = logging.getLogger(__name__)

DATASET, REPLACED = "dataset", "replaced"  # keys in the ConfigMap
RETRY_S = 5.0  # after a failed write


@dataclass(frozen=True, slots=True)
class KnownDataset:
    """A dataset and when the last replacement was found."""

    dataset: str = ""  # '': none yet
    replaced_s: int = 0  # when the last replacement was found, since 1970; 0: never


class DatasetRecord:
    """The record in a ConfigMap. Both methods raise ApiError."""

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        """Select the ConfigMap."""
        self._api = api
        self._metadata = {"name": name, "namespace": namespace}
        self._path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"

    async def recall(self) -> KnownDataset:
        """Read the record; empty if there is none."""
        try:
            found = await self._api.call("GET", self._path)
        except ApiError as error:
            if error.status != 404:
                raise
            return KnownDataset()
        data = found.get("data") or {}
        replaced = str(data.get(REPLACED, ""))
        is_time = replaced.isascii() and replaced.isdecimal() and len(replaced) < 16
        return KnownDataset(str(data.get(DATASET, "")), int(replaced) if is_time else 0)

    async def keep(self, known: KnownDataset) -> None:
        """Write the record."""
        document: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": self._metadata,
            "data": {DATASET: known.dataset, REPLACED: str(known.replaced_s)},
        }
        await self._api.apply(self._path, document)


class Datasets:
    """Tracks the store's dataset."""

    def __init__(
        self, memory: DatasetRecord | None, metrics: Metrics, clock: Callable[[], float] = time.time
    ) -> None:
        """Start without a dataset. memory: None = the record does not survive a restart."""
        self._memory = memory
        self._metrics = metrics
        self._clock = clock
        self._first = ""  # the first one of this process
        self._now = KnownDataset()
        self._kept: KnownDataset | None = None  # None until the record has been read
        self._news = asyncio.Event()

    @classmethod
    def kept_in(cls, api: Api, namespace: str, configmap: str, metrics: Metrics) -> Self:
        """Create it with this ConfigMap; '' = none."""
        return cls(DatasetRecord(api, namespace, configmap) if configmap else None, metrics)

    def holds(self, dataset: str) -> None:
        """Record the dataset of the available store."""
        self._first = self._first or dataset
        if self._now.dataset not in ("", dataset):
            self._found_another(self._now.dataset, dataset)
        else:
            self._is(KnownDataset(dataset, self._now.replaced_s))
        self._news.set()

    async def run(self) -> None:
        """Write the record after each change until cancelled; log and retry failures."""
        trouble = ""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._remember()
                trouble = ""
            except ApiError as error:
                if str(error) != trouble:
                    text = "the store's dataset could not be recorded; retrying: %s"
                    log.warning(text, error, extra={"action": "dataset_not_kept"})
                trouble = str(error)
                self._news.set()
                await asyncio.sleep(RETRY_S)

    async def _remember(self) -> None:
        if self._memory is None:
            return
        if self._kept is None:
            self._kept = await self._memory.recall()
            if self._kept.dataset not in ("", self._first):
                held = self._now.dataset  # it may have changed again since
                self._found_another(self._kept.dataset, self._first)
                self._is(KnownDataset(held, self._now.replaced_s))
            elif not self._now.replaced_s:
                self._is(KnownDataset(self._now.dataset, self._kept.replaced_s))
        if (now := self._now) != self._kept:
            await self._memory.keep(now)
            self._kept = now

    def _found_another(self, old: str, new: str) -> None:
        self._metrics.restored.inc()
        log.error(
            "the store has another dataset than before: it came back empty or was set up again",
            extra={"action": "store_restored", "old": old, "new": new},
        )
        self._is(KnownDataset(new, int(self._clock())))

    def _is(self, known: KnownDataset) -> None:
        self._now = known
        self._metrics.replaced.set(known.replaced_s)

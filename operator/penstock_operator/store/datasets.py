"""Which data the store holds, and whether it is other than before: also before this operator was started.

It stands in a ConfigMap. An operator that is started anew while the store is empty would know of no other data.
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
AGAIN_S = 5.0  # where the API server did not do it


@dataclass(frozen=True, slots=True)
class Known:
    dataset: str = ""  # '': none yet
    replaced_s: int = 0  # when it was found in place of another, since 1970; 0: never


class Memory:
    """Raises ApiError from both."""

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        """name: of the ConfigMap."""
        self._api = api
        self._metadata = {"name": name, "namespace": namespace}
        self._path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"

    async def recall(self) -> Known:
        try:
            found = await self._api.call("GET", self._path)
        except ApiError as error:
            if error.status != 404:
                raise
            return Known()
        told = found.get("data") or {}
        replaced = str(told.get(REPLACED, ""))
        is_time = replaced.isascii() and replaced.isdecimal() and len(replaced) < 16
        return Known(str(told.get(DATASET, "")), int(replaced) if is_time else 0)

    async def keep(self, known: Known) -> None:
        document: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": self._metadata,
            "data": {DATASET: known.dataset, REPLACED: str(known.replaced_s)},
        }
        await self._api.apply(self._path, document)


class Datasets:
    def __init__(
        self, memory: Memory | None, metrics: Metrics, clock: Callable[[], float] = time.time
    ) -> None:
        """memory: None = nothing outlives the process."""
        self._memory = memory
        self._metrics = metrics
        self._clock = clock
        self._first = ""  # since the process began
        self._now = Known()
        self._kept: Known | None = None  # None: nobody knows yet what was kept before
        self._news = asyncio.Event()

    @classmethod
    def kept_in(cls, api: Api, namespace: str, configmap: str, metrics: Metrics) -> Self:
        """configmap: '' = none."""
        return cls(Memory(api, namespace, configmap) if configmap else None, metrics)

    def holds(self, dataset: str) -> None:
        """The store can be used, and this is what it holds."""
        self._first = self._first or dataset
        if self._now.dataset not in ("", dataset):
            self._found_another(self._now.dataset, dataset)
        else:
            self._is(Known(dataset, self._now.replaced_s))
        self._news.set()

    async def run(self) -> None:
        """Until it is cancelled. What cannot be remembered is told, and keeps nothing else from being done."""
        trouble = ""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._remember()
                trouble = ""
            except ApiError as error:
                if str(error) != trouble:
                    text = "the store's data set cannot be remembered: %s"
                    log.warning(text, error, extra={"action": "dataset_not_kept"})
                trouble = str(error)
                self._news.set()
                await asyncio.sleep(AGAIN_S)

    async def _remember(self) -> None:
        if self._memory is None:
            return
        if self._kept is None:
            self._kept = await self._memory.recall()
            if self._kept.dataset not in ("", self._first):
                held = self._now.dataset  # it may have changed once more since
                self._found_another(self._kept.dataset, self._first)
                self._is(Known(held, self._now.replaced_s))
            elif not self._now.replaced_s:
                self._is(Known(self._now.dataset, self._kept.replaced_s))
        if (now := self._now) != self._kept:
            await self._memory.keep(now)
            self._kept = now

    def _found_another(self, old: str, new: str) -> None:
        self._metrics.restored.inc()
        log.error(
            "the store holds another data set than before: it came back empty, or somebody set it up anew",
            extra={"action": "store_restored", "old": old, "new": new},
        )
        self._is(Known(new, int(self._clock())))

    def _is(self, known: Known) -> None:
        self._now = known
        self._metrics.replaced.set(known.replaced_s)

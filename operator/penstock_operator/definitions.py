"""Whether the cluster knows Queue, Peer and Redrive. kopf never watches what was not there when it began."""

from __future__ import annotations

import asyncio
import logging

from penstock_operator.cluster.api import REMEDY, Api, ApiError
from penstock_operator.documents.crds import GROUP, VERSION
from penstock_operator.releasing import OURS

log = logging.getLogger(__name__)

LOOK_S = 1.0


class Definitions:
    """`trouble` says why nothing is watched yet; None once all kinds are served."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.trouble: str | None = "the API server has not been asked yet what it knows"

    async def wait(self) -> None:
        """Returns when all of them are served. Raises ApiError when the API server does not know us any more."""
        while True:
            trouble = await self.missing()
            if trouble is not None and trouble != self.trouble:
                log.warning("%s", trouble, extra={"action": "definitions_missing"})
            self.trouble = trouble
            if trouble is None:
                return
            await asyncio.sleep(LOOK_S)

    async def missing(self) -> str | None:
        """What is, in words, and what to do: by discovery, which everybody may ask whom the API server knows."""
        try:
            found = await self._api.call("GET", f"/apis/{GROUP}/{VERSION}")
        except ApiError as error:
            if error.status == 401:
                raise
            if error.status != 404:
                return f"what the API server knows cannot be asked: {error}"
            found = {}
        served = {each["name"] for each in found.get("resources") or ()}
        missing = [kind.value for kind in OURS if kind.value not in served]
        return f"nobody has defined {', '.join(missing)} of {GROUP}/{VERSION}: {REMEDY}" if missing else None

"""Wait for the CRDs of Queue, Peer and Redrive: kopf only watches kinds that exist when it starts."""

from __future__ import annotations

import asyncio
import logging

from penstock_operator.cluster.api import REMEDY, Api, ApiError
from penstock_operator.documents.crds import GROUP, VERSION
from penstock_operator.uninstall_finalizers import KINDS

log = logging.getLogger(__name__)

POLL_S = 1.0


class Definitions:
    """The state of the CRDs. `trouble` says why nothing is watched yet; None once all kinds are served."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.trouble: str | None = "the CRDs have not been checked yet"

    async def wait(self) -> None:
        """Return when all kinds are served. Raises ApiError after a 401."""
        while True:
            trouble = await self.missing()
            if trouble is not None and trouble != self.trouble:
                log.warning("%s", trouble, extra={"action": "definitions_missing"})
            self.trouble = trouble
            if trouble is None:
                return
            await asyncio.sleep(POLL_S)

    async def missing(self) -> str | None:
        """Return which kinds are missing and what to do, or None. Uses discovery, which needs no rights."""
        try:
            found = await self._api.call("GET", f"/apis/{GROUP}/{VERSION}")
        except ApiError as error:
            if error.status == 401:
                raise
            if error.status != 404:
                return f"the CRDs cannot be checked: {error}"
            found = {}
        served = {each["name"] for each in found.get("resources") or ()}
        missing = [kind.value for kind in KINDS if kind.value not in served]
        return (
            f"the CRDs of {', '.join(missing)} in {GROUP}/{VERSION} are missing: {REMEDY}"
            if missing
            else None
        )

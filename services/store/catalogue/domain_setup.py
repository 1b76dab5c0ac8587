"""Set up domains: a new domain gets the registry's dataset."""

from __future__ import annotations

from services.store.catalogue.registry import Registry, begin_dataset
from services.store.model.errors import DatasetLost
from services.store.pipeline.domain import Domain
from services.store.pipeline.domains import Domains


class DomainSetup:
    """Setup of the domains of one store."""

    def __init__(self, registry: Registry, domains: Domains) -> None:
        self._registry = registry
        self._domains = domains

    async def prepare(self, name: str) -> None:
        """Set up a domain unless that was done before. Raises NotInitialised, DatasetLost, StoreUnavailable."""
        if await self._registry.claim_domain(name):
            await self.set_up(self._domains.get(name))

    async def set_up(self, domain: Domain) -> None:
        """Give the domain the registry's dataset. Raises DatasetLost if it has another dataset."""
        epoch = await self._registry.epoch()
        if await domain.epoch() == "":
            found = await begin_dataset(domain.link, domain.keys.epoch, epoch)
            if found.partition(".")[0] != epoch.partition(".")[0]:
                raise DatasetLost
        await self._registry.domain_is_ready(domain.name)

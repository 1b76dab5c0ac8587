"""The known machines and their protocol options, from the file, the settings and the store (rqp_cast.md 1.1)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Iterator

from protos.rqp_cast import REQUEST_PORT, Host, is_address, parse_rqprc
from services.kit.config import SettingsError
from services.rqp.cast.machines.broadcast_addresses import broadcast_problem
from services.rqp.cast.settings import CastPeer, PeerOptions
from services.rqp.jobs import start_job, stop_job
from services.rqp.rqprc import RqprcFile
from services.rqp.service import RqpService
from services.store.model import PeerSpec

log = logging.getLogger(__name__)

PROTOCOL = "rqp-cast"
LOOK_UP_S = 5.0  # how long a question waits for a name


class Machines:
    """Groups of machines by name, and the machines of `.rqprc`, which belong to no group."""

    def __init__(self, service: RqpService) -> None:
        """Raise SettingsError if an address in the settings is a broadcast address."""
        self._settings = settings = service.settings.cast
        self._metrics = service.metrics
        self._file = RqprcFile(settings.rqprc, REQUEST_PORT) if settings.rqprc is not None else None
        self._resolver = service.resolver
        self._registered = service.registered
        self._look_s = service.settings.lookup_s
        self._groups: dict[str, CastPeer] = {}
        self._hosts: dict[str, tuple[Host, ...]] = {}  # of the groups, by name
        self._resolved: dict[str, tuple[str, ...]] = {}  # IPv4 addresses of names, as last resolved
        self._warned: frozenset[str] = frozenset()  # of broadcast addresses
        self._task: asyncio.Task[None] | None = None
        self._regroup()
        self._check_settings()

    def start(self) -> None:
        """Resolve names regularly: a machine is recognized by its addresses."""
        self._registered.on_change.append(self._regroup)
        self._task = start_job(self._keep_resolving, "rqp cast names", self._metrics)

    async def close(self) -> None:
        """Stop resolving names."""
        await stop_job(self._task)

    def to_ask(self, peers: Iterable[str] = ()) -> list[Host]:
        """Return the machines of these groups; of all groups and the file if none is named."""
        names = tuple(peers)
        found = [host for name in names for host in self._hosts.get(name, ())] if names else self._all()
        return list(dict.fromkeys(found))

    def all_of(self, peers: Iterable[str]) -> frozenset[str]:
        """Return the names and addresses of the machines to ask."""
        return frozenset(name for host in self.to_ask(peers) for name in (host.name, *self.known(host)))

    def known(self, host: Host) -> tuple[str, ...]:
        """Return a machine's addresses as last resolved."""
        return (host.name,) if is_address(host.name) else self._resolved.get(host.name, ())

    async def addresses(self, host: Host) -> tuple[str, ...]:
        """Return a machine's current addresses; () for a name that was never found."""
        if not is_address(host.name):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_UP_S):
                    found = await self._resolver.addresses(host.name)
                self._resolved[host.name] = tuple(filter(is_address, found))
        return self.known(host)

    def is_listed(self, address: str) -> bool:
        """Return whether the address belongs to any machine (1.1)."""
        return any(address in self.known(host) for host in self._all())

    def options(self, address: str) -> PeerOptions:
        """Return the protocol options of the machine with this address."""
        for name, hosts in self._hosts.items():
            if any(address in self.known(host) for host in hosts):
                return self._groups[name]
        return self._settings

    def _all(self) -> Iterator[Host]:
        if self._file is not None:
            self._file.reload()
            yield from self._file.hosts
        for hosts in self._hosts.values():
            yield from hosts

    def _regroup(self) -> None:
        """Merge the groups; of two with the same name, the one in the settings wins."""
        peers = self._registered.peers.items()
        stored = {name: _group(spec) for name, spec in peers if spec.protocol == PROTOCOL}
        self._groups = {**stored, **self._settings.peers}
        self._hosts = {
            name: parse_rqprc("\n".join(group.addresses)).hosts for name, group in self._groups.items()
        }

    async def look_up(self) -> None:
        """Resolve the names of all machines, and forget all other names."""
        hosts = [host for host in dict.fromkeys(self._all()) if not is_address(host.name)]
        names = {host.name for host in hosts}
        self._resolved = {name: found for name, found in self._resolved.items() if name in names}
        await asyncio.gather(*map(self.addresses, hosts))
        self._warn_of_broadcasts()

    def _check_settings(self) -> None:
        faults = [
            f"edges.rqp.cast.peers.{name}.addresses: {fault}"
            for name in self._settings.peers
            for host in self._hosts[name]
            if is_address(host.name) and (fault := broadcast_problem(host.name))
        ]
        if faults:
            raise SettingsError(faults)

    def _warn_of_broadcasts(self) -> None:
        """Log each broadcast address that comes from the file, Peer documents or DNS, once."""
        found = {address for host in self._all() for address in self.known(host)}
        faults = {address: fault for address in found if (fault := broadcast_problem(address))}
        for address in sorted(faults.keys() - self._warned):
            text = "%s; no questions are sent to it"
            log.warning(text, faults[address], extra={"action": "cast_address_of_many"})
        self._warned = frozenset(faults)

    async def _keep_resolving(self) -> None:
        while True:
            await self.look_up()
            await asyncio.sleep(self._look_s)


def _group(spec: PeerSpec) -> CastPeer:
    """Return a Peer document as the settings would describe it."""
    return CastPeer.model_construct(
        addresses=tuple(spec.addresses),
        omit_address=spec.omit_address,
        trust_address=spec.trust_address,
        duplicate_result=spec.duplicate_result.value,
        decline=spec.decline,
    )

"""Which machines there are, and how messages are exchanged with each: file, settings, the store (rqp_cast.md 1.1)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator

from protos.rqp_cast import REQUEST_PORT, Host, is_address, parse_rqprc
from services.kit.config import SettingsError
from services.rqp.cast.machines.broadcast_addresses import address_of_many
from services.rqp.cast.settings import CastPeer, CastSettings, PeerOptions
from services.rqp.jobs import start_job, stop_job
from services.rqp.rqprc import RqprcFile
from services.rqp.service import RqpService
from services.store.model import PeerSpec

log = logging.getLogger(__name__)

PROTOCOL = "rqp-cast"
LOOK_UP_S = 5.0  # for a name: those who wait for it are asked without it then


class Machines:
    """Groups by name, and what stands in `.rqprc`, which belongs to no group."""

    def __init__(self, settings: CastSettings, service: RqpService) -> None:
        """Raises SettingsError if an address of the settings is one of many machines."""
        self._settings = settings
        self._metrics = service.metrics
        self._file = RqprcFile(settings.rqprc, REQUEST_PORT) if settings.rqprc is not None else None
        self._names = service.resolver
        self._registered = service.registered
        self._look_s = service.settings.lookup_s
        self._groups: dict[str, CastPeer] = {}
        self._hosts: dict[str, tuple[Host, ...]] = {}  # of the groups, by name
        self._meaning: dict[str, tuple[str, ...]] = {}  # IPv4 addresses of names, as they were last looked up
        self._told_of_many: frozenset[str] = frozenset()
        self._task: asyncio.Task[None] | None = None
        self._regroup()
        self._check_settings()

    def start(self) -> None:
        """Names are looked up now and then: who they are must be known before they ask or answer."""
        self._registered.on_change.append(self._regroup)
        self._task = start_job(self._keep_looking, "rqp cast names", self._metrics)

    async def close(self) -> None:
        await stop_job(self._task)

    def to_ask(self, peers: Iterable[str] = ()) -> list[Host]:
        """The machines of these groups; without any, all that there are, the file's included."""
        names = tuple(peers)
        found = [host for name in names for host in self._hosts.get(name, ())] if names else self._all()
        return list(dict.fromkeys(found))

    def all_of(self, peers: Iterable[str]) -> frozenset[str]:
        """The names and addresses of those to ask."""
        return frozenset(name for host in self.to_ask(peers) for name in (host.name, *self.known(host)))

    def known(self, host: Host) -> tuple[str, ...]:
        """Its addresses as they were last looked up."""
        return (host.name,) if is_address(host.name) else self._meaning.get(host.name, ())

    async def addresses(self, host: Host) -> tuple[str, ...]:
        """Its addresses now; () for a name that never meant anything."""
        if not is_address(host.name):
            try:
                async with asyncio.timeout(LOOK_UP_S):
                    found = await self._names.addresses(host.name)
            except TimeoutError:
                found = self._meaning.get(host.name, ())
            self._meaning[host.name] = tuple(filter(is_address, found))
        return self.known(host)

    def is_listed(self, address: str) -> bool:
        """Whether it is one of the addresses of any machine (1.1)."""
        return any(address in self.known(host) for host in self._all())

    def manners(self, address: str) -> PeerOptions:
        """How messages are exchanged with whoever has this address."""
        for name, hosts in self._hosts.items():
            if any(address in self.known(host) for host in hosts):
                return self._groups[name]
        return self._settings

    def _all(self) -> Iterator[Host]:
        if self._file is not None:
            self._file.reload()  # costs some microseconds: it is never older than the question
            yield from self._file.hosts
        for hosts in self._hosts.values():
            yield from hosts

    def _regroup(self) -> None:
        """Of groups of one name, the one in the settings counts."""
        stored = {name: _group(spec) for name, spec in self._registered.peers.items() if _is_ours(spec)}
        self._groups = {**stored, **self._settings.peers}
        self._hosts = {
            name: parse_rqprc("\n".join(group.addresses)).hosts for name, group in self._groups.items()
        }

    async def look_up(self) -> None:
        """All names that there are; what names no machine any more is forgotten."""
        hosts = [host for host in dict.fromkeys(self._all()) if not is_address(host.name)]
        names = {host.name for host in hosts}
        self._meaning = {name: found for name, found in self._meaning.items() if name in names}
        await asyncio.gather(*map(self.addresses, hosts))
        self._tell_of_many()

    def _check_settings(self) -> None:
        faults = [
            f"edges.rqp.cast.peers.{name}.addresses: {fault}"
            for name in self._settings.peers
            for host in self._hosts[name]
            if is_address(host.name) and (fault := address_of_many(host.name))
        ]
        if faults:
            raise SettingsError(faults)

    def _tell_of_many(self) -> None:
        """Log, once, the addresses of many machines that the file, Peer documents and names brought."""
        found = {address for host in self._all() for address in self.known(host)}
        faults = {address: fault for address in found if (fault := address_of_many(address))}
        for address in sorted(faults.keys() - self._told_of_many):
            log.warning(
                "%s; no question is sent to it", faults[address], extra={"action": "cast_address_of_many"}
            )
        self._told_of_many = frozenset(faults)

    async def _keep_looking(self) -> None:
        while True:
            await self.look_up()
            await asyncio.sleep(self._look_s)


def _is_ours(spec: PeerSpec) -> bool:
    return spec.protocol == PROTOCOL


def _group(spec: PeerSpec) -> CastPeer:
    """What the document says, as the settings would."""
    return CastPeer.model_construct(
        addresses=tuple(spec.addresses),
        omit_address=spec.omit_address,
        trust_address=spec.trust_address,
        duplicate_result=spec.duplicate_result.value,
        decline=spec.decline,
    )

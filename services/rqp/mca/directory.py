"""Who there is: the receiving MCAs that transmission queues may ask, by the names that queue documents have for them.

Peers come from the settings, from the store, and from a file; a name of theirs that is the same is the same peer, and
the first of these says what it is. Names of machines are looked up again and again: each address behind one is a
receiving MCA of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from protos.rqp_mca import RQP_PORT, Profile
from services.rqp.jobs import start_job, stop_job
from services.rqp.mca.rqprc import read_machine
from services.rqp.mca.settings import McaPeer, McaSettings, parse_address
from services.rqp.rqprc import RqprcFile
from services.rqp.service import RqpService
from services.store.model import PeerProtocol

LOOK_S = 1.0  # how often the file, and names whose time is over, are looked at


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One receiving MCA."""

    host: str  # an address
    port: int
    profile: Profile
    window: int

    @property
    def key(self) -> str:
        """As machines, conditions and the log call it; another profile is another way to speak to it."""
        place = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        return place if self.profile is Profile.PACKED else f"{place} {self.profile.value}"


Endpoints = dict[str, Endpoint]  # by key


class Directory:
    def __init__(self, service: RqpService, settings: McaSettings) -> None:
        self._service = service
        self._said = settings.peers
        self._file = RqprcFile(settings.rqprc, RQP_PORT, read_machine) if settings.rqprc is not None else None
        self._found: dict[str, tuple[Endpoint, ...]] = {}  # by the peer's name
        self._followers: dict[Callable[[], None], None] = {}
        self._stale = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        for changes in (self._service.registered, self._service.resolver):
            changes.on_change.append(self._stale.set)
        self._task = start_job(self._keep_looking, "MCA peers", self._service.metrics)

    async def close(self) -> None:
        await stop_job(self._task)

    def endpoints(self, names: Iterable[str]) -> Endpoints:
        """Of these peers; of all, if none is named."""
        wanted = list(names) or list(self._found)
        found: Endpoints = {}
        for name in wanted:
            for endpoint in self._found.get(name, ()):
                found.setdefault(endpoint.key, endpoint)
        return found

    def follow(self, told: Callable[[], None]) -> None:
        """`told` is called whenever there are others."""
        self._followers[told] = None

    def follow_no_more(self, told: Callable[[], None]) -> None:
        self._followers.pop(told, None)

    async def _keep_looking(self) -> None:
        while True:
            self._stale.clear()
            self._look()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._stale.wait()
            except TimeoutError:
                continue

    def _look(self) -> None:
        """What is known by now; names are looked up beside, each for itself."""
        if self._file is not None:
            self._file.reload()
        now = {name: tuple(self._endpoints_of(peer)) for name, peer in self._peers().items()}
        if now != self._found:
            self._found = now
            for told in list(self._followers):
                told()

    def _peers(self) -> dict[str, McaPeer]:
        peers = self._peers_in_file()
        for name, spec in self._service.registered.peers.items():
            if spec.protocol is PeerProtocol.MCA:
                profile = Profile(spec.profile.value)
                peers[name] = McaPeer(addresses=spec.addresses, profile=profile, window=spec.window)
        return {**peers, **self._said}

    def _peers_in_file(self) -> dict[str, McaPeer]:
        """A host with several lines has several receiving MCAs."""
        lines: dict[str, tuple[str, ...]] = {}
        for host in self._file.hosts if self._file is not None else ():
            lines[host.name] = (*lines.get(host.name, ()), f"{host.name}:{host.request_port}")
        return {name: McaPeer(addresses=addresses) for name, addresses in lines.items()}

    def _endpoints_of(self, peer: McaPeer) -> Iterator[Endpoint]:
        for address in peer.addresses:
            host, port = parse_address(address)
            for each in self._service.resolver.known(host):
                yield Endpoint(each, port, peer.profile, peer.window)

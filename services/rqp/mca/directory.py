"""The receiving MCAs that transmission queues may ask, by the names that queue documents use.

Peers come from the settings, the store and a file; of two with the same name, the first of these sources wins. Host
names are resolved regularly: each of their addresses is a receiving MCA of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from protos.rqp_mca import RQP_PORT, Profile
from services.rqp.jobs import start_job, stop_job
from services.rqp.mca.rqprc import read_machine
from services.rqp.mca.settings import McaPeer, parse_address
from services.rqp.rqprc import RqprcFile
from services.rqp.service import RqpService
from services.store.model import PeerProtocol

REFRESH_S = 1.0  # how often the file and stale names are checked


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One receiving MCA."""

    host: str  # an address
    port: int
    profile: Profile
    window: int

    @property
    def key(self) -> str:
        """Its name in the state machine, conditions and the log; it includes a profile other than PACKED."""
        place = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        return place if self.profile is Profile.PACKED else f"{place} {self.profile.value}"


Endpoints = dict[str, Endpoint]  # by key


class Directory:
    """All known receiving MCAs, kept up to date from `start` until `close`; `on_change` is called for each change."""

    def __init__(self, service: RqpService) -> None:
        settings = service.settings.mca
        self._service = service
        self._configured = settings.peers
        self._file = RqprcFile(settings.rqprc, RQP_PORT, read_machine) if settings.rqprc is not None else None
        self._found: dict[str, tuple[Endpoint, ...]] = {}  # by the peer's name
        self.on_change: set[Callable[[], None]] = set()
        self._stale = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow changes of the peers."""
        for changes in (self._service.registered, self._service.resolver):
            changes.on_change.append(self._stale.set)
        self._task = start_job(self._keep_fresh, "MCA peers", self._service.metrics)

    async def close(self) -> None:
        """Stop following changes."""
        await stop_job(self._task)

    def endpoints(self, names: Iterable[str]) -> Endpoints:
        """Return the endpoints of these peers, or of all if none is named."""
        wanted = list(names) or list(self._found)
        found: Endpoints = {}
        for name in wanted:
            for endpoint in self._found.get(name, ()):
                found.setdefault(endpoint.key, endpoint)
        return found

    async def _keep_fresh(self) -> None:
        while True:
            self._stale.clear()
            self._refresh()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REFRESH_S):
                    await self._stale.wait()

    def _refresh(self) -> None:
        """Update the endpoints from what is known now; names are resolved in the background."""
        if self._file is not None:
            self._file.reload()
        now = {name: tuple(self._endpoints_of(peer)) for name, peer in self._peers().items()}
        if now != self._found:
            self._found = now
            for notify in tuple(self.on_change):
                notify()

    def _peers(self) -> dict[str, McaPeer]:
        peers = self._peers_in_file()
        for name, spec in self._service.registered.peers.items():
            if spec.protocol is PeerProtocol.MCA:
                profile = Profile(spec.profile.value)
                peers[name] = McaPeer(addresses=spec.addresses, profile=profile, window=spec.window)
        return {**peers, **self._configured}

    def _peers_in_file(self) -> dict[str, McaPeer]:
        """Return the file's peers; a host on several lines has several receiving MCAs."""
        lines: dict[str, tuple[str, ...]] = {}
        for host in self._file.hosts if self._file is not None else ():
            lines[host.name] = (*lines.get(host.name, ()), f"{host.name}:{host.request_port}")
        return {name: McaPeer(addresses=addresses) for name, addresses in lines.items()}

    def _endpoints_of(self, peer: McaPeer) -> Iterator[Endpoint]:
        for address in peer.addresses:
            host, port = parse_address(address)
            for each in self._service.resolver.known(host):
                yield Endpoint(each, port, peer.profile, peer.window)

"""Cache the peers of the store, and reload them when one changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from services.store.model.errors import StoreError
from services.store.model.peer import NO_PEER, Peer, PeerProtocol, PeerSpec, Unreadable
from services.store.store import Store

log = logging.getLogger(__name__)

RELOAD_S = 30.0  # without notices, which may be lost
AGAIN_S = 1.0


class KnownPeers:
    """The current peers: `peers` has specs by name, `on_change` callbacks for changes."""

    def __init__(self, store: Store, failed: Callable[[], None]) -> None:
        """failed: called for each internal error."""
        self.peers: dict[str, PeerSpec] = {}
        self.on_change: list[Callable[[], None]] = []
        self._unreadable: set[Unreadable] = set()  # logged already
        self._left_out: set[tuple[str, str]] = set()  # peers and addresses logged already
        self._store = store
        self._failed = failed
        self._stale = asyncio.Event()
        self._unwatch: Callable[[], None] = lambda: None
        self._task: asyncio.Task[None] | None = None

    def addresses(self, protocol: PeerProtocol) -> list[str]:
        """Return the distinct addresses of all peers with this protocol, in the order of the peers' names."""
        found = (self.peers[name] for name in sorted(self.peers))
        return list(
            dict.fromkeys(each for spec in found if spec.protocol is protocol for each in spec.addresses)
        )

    def start(self) -> None:
        """Start to follow changes, in a process that takes part in the store's upkeep."""
        self._unwatch = self._store.peers.watch(lambda _name: self._stale.set())
        self._task = asyncio.create_task(self._keep_following(), name="peers in the store")

    async def close(self) -> None:
        """Stop following changes."""
        if self._task is not None:
            self._unwatch()
            self._task.cancel()
            await asyncio.wait((self._task,))
            self._task = None

    async def _keep_following(self) -> None:
        """Follow changes for ever; internal errors, also of callbacks, only interrupt it."""
        while True:
            try:
                await self._follow()
            except Exception:
                log.exception(
                    "peers are not reloaded: internal error", extra={"action": "job_failed", "job": "peers"}
                )
                self._failed()
                await asyncio.sleep(AGAIN_S)

    async def _follow(self) -> None:
        while True:
            self._stale.clear()
            pause_s = RELOAD_S if await self._read() else AGAIN_S
            try:
                async with asyncio.timeout(pause_s):
                    await self._stale.wait()
            except TimeoutError:
                continue

    async def _read(self) -> bool:
        """Reload the peers; return False if the store cannot be read."""
        try:
            found = await self._store.peers.all()
        except StoreError as error:
            log.debug("peers cannot be read, previous ones stay: %s", error, extra={"action": "peers_unread"})
            return False
        self._log_unreadable({one for one in found if isinstance(one, Unreadable)})
        peers = self._usable({one.name: one.spec for one in found if isinstance(one, Peer)})
        if peers != self.peers:
            self.peers = peers
            for notify in self.on_change:
                notify()
        return True

    def _usable(self, peers: dict[str, PeerSpec]) -> dict[str, PeerSpec]:
        """Return the peers without invalid addresses that older versions accepted; omit peers without others."""
        left_out = {(name, address) for name, spec in peers.items() for address in spec.not_of_one_machine()}
        for name, address in sorted(left_out - self._left_out):
            fields = {"action": "peer_address_left_out", "peer_name": name, "address": address}
            log.warning(
                "address %s of peer %s is ignored: %s; apply the document without it; 127.0.0.1 or [::1] is this "
                "machine",
                address,
                name,
                NO_PEER,
                extra=fields,
            )
        self._left_out = left_out
        kept = {
            name: spec.model_copy(
                update={"addresses": tuple(each for each in spec.addresses if (name, each) not in left_out)}
            )
            for name, spec in peers.items()
        }
        return {name: spec for name, spec in kept.items() if spec.addresses}

    def _log_unreadable(self, unreadable: set[Unreadable]) -> None:
        for one in unreadable - self._unreadable:
            fields = {"action": "peer_unreadable", "peer_name": one.name}
            log.warning(
                "peer %s is ignored, as its document cannot be read: %s", one.name, one.problem, extra=fields
            )
        self._unreadable = unreadable

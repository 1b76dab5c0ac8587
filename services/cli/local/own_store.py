"""The store that `penstock up` runs itself: started on its folder, held to the data that was there, started again."""

from __future__ import annotations

import asyncio
import logging
import os

from services.cli.local.folder import Folder, Tenant
from services.cli.local.restarts import Restarts
from services.cli.terminal.exits import Exit, Failure
from services.kit.config import GlobalSettings
from services.store import Store, StoreError
from services.store.model import NotInitialised
from services.store.redis import EmbeddedSettings, EmbeddedStore, Promises

log = logging.getLogger(__name__)


class OwnStore:
    """`folder` must be locked by this process."""

    def __init__(self, folder: Folder, settings: EmbeddedSettings) -> None:
        """Raises StoreUnavailable for a folder whose path is too long for a socket, where no port was given."""
        self._folder = folder
        self._server = EmbeddedStore(settings)
        self.url = self._server.url

    @classmethod
    def of(
        cls,
        folder: Folder,
        settings: GlobalSettings,
        *,
        server: str | None = None,
        port: int = 0,
        others: int = 0,
    ) -> OwnStore:
        """`server` and `port` are said on the command line, and stand over the settings. Raises Failure.

        others: octets of memory that the processes beside the server need.
        """
        program = server or str(settings.store.server or "")
        try:
            keep_open = (folder.lock_fd,)
            return cls(
                folder, EmbeddedSettings(folder.path, program, port, others=others, keep_open=keep_open)
            )
        except StoreError as error:
            raise Failure(Exit.USAGE, "bad_data_dir", str(error)) from None

    async def start(self, *, accept_loss: bool = False) -> Promises:
        """Returns once the store is set up and has the data that this folder had.

        Raises Failure dataset_lost where it has not, and StoreError where there is no store at all.
        """
        if accept_loss:
            self._folder.forget()
        if self._folder.dataset and not self._folder.has_log():
            raise self._folder.lost()  # before the server makes a new log, which would be in the way of a backup
        self._warn_of_shortage()
        await self._server.start()
        store = Store(self.url, "up")
        try:
            await self._check(store)
            promises = await store.initialise(accept_loss=accept_loss)
            self._folder.remember(_dataset(await store.registry.epoch()))
        finally:
            await store.close()
        self._tell()
        return promises

    async def _check(self, store: Store) -> None:
        try:
            found = _dataset(await store.registry.epoch())
        except NotInitialised:
            found = ""
        if self._folder.dataset and found != self._folder.dataset:
            raise self._folder.lost()

    def _tell(self) -> None:
        process = self._server.process
        pid = process.pid if process is not None else 0
        self._folder.tell(Tenant(os.getpid(), pid, self.url, self._server.share().reason))

    def _warn_of_shortage(self) -> None:
        share = self._server.share()
        if share.is_short:
            text = "memory is short, the kernel may end the store or an edge: its maxmemory is %s; raise the limit"
            log.warning(text, share.reason, extra={"action": "memory_short", "maxmemory": share.octets})

    async def watch(self) -> None:
        """For ever: a server that ends is started again. Raises Failure when it came back without the data."""
        restarts = Restarts()
        while True:
            status = await self._server.ended()
            pause_s = restarts.pause_s()
            fields = {"action": "store_restarted", "status": status, "restart_in_s": pause_s}
            why = self._server.complaint() if status > 0 else "starting it again"
            log.error("the store's server ended: %s", why, extra=fields)
            await asyncio.sleep(pause_s)
            await self._start_again()
            restarts.started()

    async def _start_again(self) -> None:
        try:
            await self.start()
        except (StoreError, OSError) as error:
            log.error("the store could not be started: %s", error, extra={"action": "store_start_failed"})
            await self._server.stop()

    async def stop(self) -> None:
        """In order; every answer that was given is on the disk."""
        await self._server.stop()


def _dataset(epoch: str) -> str:
    """The dataset's id without its generation."""
    return epoch.partition(".")[0]

"""Run the store of `penstock up` on its data folder and check that the data is the expected one."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import replace
from typing import Any

from services.cli.local.folder import Folder
from services.cli.terminal.exits import Exit, Failure
from services.kit.config import GlobalSettings
from services.store import Store, StoreError
from services.store.model import NotInitialised, Promises
from services.store.redis import EmbeddedSettings, EmbeddedStore

log = logging.getLogger(__name__)


class OwnStore:
    """The store that `penstock up` runs itself."""

    def __init__(
        self,
        folder: Folder,
        settings: GlobalSettings,
        *,
        server: str | None = None,
        port: int = 0,
        others: int = 0,
    ) -> None:
        """Prepare the server; `folder` must be locked by this process, `server` and `port` override the settings.

        others: bytes of memory that the other processes need. Raises Failure.
        """
        self._folder = folder
        program = server or str(settings.store.server or "")
        own = EmbeddedSettings(folder.path, program, port, others=others, keep_open=(folder.lock_fd,))
        try:
            self.server = EmbeddedStore(own)
        except StoreError as error:  # the path is too long for a socket, and no port is set
            raise Failure(Exit.USAGE, "bad_data_dir", str(error)) from None
        self.url = self.server.url

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the server as a child of this process. Raises Failure dataset_lost, OSError."""
        if self._folder.dataset and not self._folder.has_log():
            raise self._folder.lost()  # before the server creates a log that would block a restore
        share = self.server.share()
        if share.is_short:
            text = (
                "memory is short; the kernel may kill the store or an edge: maxmemory is %s; raise the limit"
            )
            log.warning(text, share.reason, extra={"action": "memory_short", "maxmemory": share.octets})
        process = self.server.launch()
        try:
            self._publish(store_pid=process.pid)
        except OSError:  # the disk is full: other commands could not find this server
            process.kill()
            process.wait()
            raise
        return process

    async def check(
        self, process: subprocess.Popen[bytes] | None = None, *, accept_loss: bool = False
    ) -> Promises:
        """Wait until the server answers, set it up, and check that it has this folder's data.

        process: the server's, if it is a child of this one. Raises Failure dataset_lost if the data is another one,
        StoreError if the store cannot be used.
        """
        await self.server.until_ready(process)
        store, found = Store(self.url, "up"), ""
        try:
            with suppress(NotInitialised):
                found = _dataset(await store.registry.epoch())
            if self._folder.dataset and found != self._folder.dataset:
                raise self._folder.lost()
            promises = await store.initialise(accept_loss=accept_loss)
            self._folder.remember(_dataset(await store.registry.epoch()))
        finally:
            await store.close()
        self._publish(url=self.url, memory=self.server.share().reason)
        return promises

    def end_server(self) -> None:
        """Terminate the server. Everything it has acknowledged is on disk."""
        tenant = self._folder.tenant()
        if tenant is not None and tenant.store_pid:
            with suppress(ProcessLookupError):  # it has already ended
                os.kill(tenant.store_pid, signal.SIGTERM)

    def _publish(self, **changes: Any) -> None:
        """Update the tenant. The rest stays, so that other commands find and await a store that is restarting."""
        tenant = self._folder.tenant()
        assert tenant is not None
        self._folder.publish(replace(tenant, **changes))


def _dataset(epoch: str) -> str:
    """Return the id of the dataset without its generation."""
    return epoch.partition(".")[0]

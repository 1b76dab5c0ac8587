"""The store that `penstock up` runs itself: started on its folder, held to the data that was there."""

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
from services.store.model import NotInitialised
from services.store.redis import EmbeddedSettings, EmbeddedStore, Promises

log = logging.getLogger(__name__)


class OwnStore:
    def __init__(
        self,
        folder: Folder,
        settings: GlobalSettings,
        *,
        server: str | None = None,
        port: int = 0,
        others: int = 0,
    ) -> None:
        """`folder` must be locked by this process; `server` and `port`, of the command line, stand over the settings.

        others: octets of memory that the processes beside the server need. Raises Failure.
        """
        self._folder = folder
        program = server or str(settings.store.server or "")
        own = EmbeddedSettings(folder.path, program, port, others=others, keep_open=(folder.lock_fd,))
        try:
            self.server = EmbeddedStore(own)
        except StoreError as error:  # a path that is too long for a socket, and no port
            raise Failure(Exit.USAGE, "bad_data_dir", str(error)) from None
        self.url = self.server.url

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the server as a child of this process. Raises Failure dataset_lost, OSError."""
        if self._folder.dataset and not self._folder.has_log():
            raise self._folder.lost()  # before the server makes a new log, which would be in the way of a backup
        share = self.server.share()
        if share.is_short:
            text = "memory is short, the kernel may end the store or an edge: its maxmemory is %s; raise the limit"
            log.warning(text, share.reason, extra={"action": "memory_short", "maxmemory": share.octets})
        process = self.server.launch()
        try:
            self._tell(store_pid=process.pid)
        except OSError:  # the disk is full: nothing would know of this server
            process.kill()
            process.wait()
            raise
        return process

    async def check(
        self, process: subprocess.Popen[bytes] | None = None, *, accept_loss: bool = False
    ) -> Promises:
        """Return once the server answers, is set up and has the data that this folder had.

        process: that of the server, if it is this one's child. Raises Failure dataset_lost where it has other data, and
        StoreError where there is no store at all.
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
        self._tell(url=self.url, memory=self.server.share().reason)
        return promises

    def end_server(self) -> None:
        """Tell the server to end. Every answer that it has given is on the disk."""
        tenant = self._folder.tenant()
        if tenant is not None and tenant.store_pid:
            with suppress(ProcessLookupError):  # it has ended by itself
                os.kill(tenant.store_pid, signal.SIGTERM)

    def _tell(self, **changes: Any) -> None:
        """Other commands still find the store while it is started again, and wait for it."""
        tenant = self._folder.tenant()
        assert tenant is not None
        self._folder.tell(replace(tenant, **changes))


def _dataset(epoch: str) -> str:
    """The dataset's id without its generation."""
    return epoch.partition(".")[0]

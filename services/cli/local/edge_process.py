"""An edge as a child process of `penstock up`: started, watched, started again, drained."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from services.cli.local import logbook
from services.cli.local.restarts import Restarts
from services.cli.terminal.exits import Exit, Failure
from services.cli.terminal.failures import overheard
from services.kit.config import nested

log = logging.getLogger(__name__)

Place = tuple[str, int]  # host, port

READY_TIMEOUT_S = 60.0
ASK_AGAIN_S = 0.05
LINE_BYTES = 1 << 20  # a longer line of a log is dropped
ANSWER_BYTES = 4096  # of a health page
LAST_WORDS = 5  # lines kept of what a child said outside of its log


def _pair(path: Sequence[str], port: int) -> str:
    """Return the setting as `--set` takes it: its value is JSON, as names of listeners may have dots."""
    return f"{path[0]}={json.dumps(nested(path[1:], port))}"


class EdgeProcess:
    """`penstock serve NAME` with these arguments. What it logs tells where it listens."""

    def __init__(
        self, name: str, arguments: Sequence[str], store_url: str, health_port: int | None = None
    ) -> None:
        """health_port: the first choice, where no setting has one; None if `arguments` set it."""
        self.name = name
        self._health_port = health_port
        self.places: dict[str, Place] = {}  # listener -> where it is
        self.health: Place | None = None
        self._ports: dict[tuple[str, ...], int] = {}  # the path of a setting -> the port that it led to
        self._arguments = list(arguments)
        self._environment = {**os.environ, "PENSTOCK_STORE__URL": store_url}  # not for everybody's `ps`
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._may_listen = False
        self._has_started = asyncio.Event()
        self._last_words: list[str] = []
        self._complaint: Failure | None = None
        self._unready = "it does not answer"

    def _command(self) -> list[str]:
        """The second start takes the ports of the first, each in its setting, so that clients find it again."""
        own = [*self._words(), "--json", "--parent", str(os.getpid())]
        if self._health_port is not None:
            own += ["--health-port", str(self._health_port)]
        pairs = [word for path, port in self._ports.items() for word in ("--set", _pair(path, port))]
        return [sys.executable, "-P", "-m", "services.cli", *own, *self._arguments, *pairs]

    def _words(self) -> list[str]:
        """The command."""
        return ["serve", self.name]

    async def start(self) -> None:
        """Cancelled, it has started all the same: a process that is half made has no end that anybody could tell."""
        self._has_started.clear()
        self._last_words.clear()
        self._complaint = None
        making = asyncio.create_task(self._make())
        try:
            await asyncio.shield(making)
        except asyncio.CancelledError:
            await making
            raise

    async def _make(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._command(),
            stdin=asyncio.subprocess.PIPE,  # its end is the sign to open ports
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
            limit=LINE_BYTES,
            start_new_session=True,  # Ctrl-C is for `up`, which tells us when
        )
        self._reading = asyncio.create_task(self._read(self._process), name=f"log of {self.name}")
        self._sign()

    async def listen(self) -> None:
        """Let it open its ports, now and whenever it is started again; returns when they are open."""
        self._may_listen = True
        self._sign()
        await self._has_started.wait()

    def _sign(self) -> None:
        if self._may_listen and self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()

    async def ready(self) -> None:
        """Returns when it serves; one that is killed before is started again. Raises Failure if it ends by itself."""
        restarts = Restarts()
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                while (status := await self._serves_or_ends()) is not None:
                    if status >= 0:
                        raise self._failure(status)
                    await self._start_again(status, restarts)
        except TimeoutError:
            text = f"{self.name} is not ready after {READY_TIMEOUT_S:.0f} s: {self._unready}"
            raise Failure(Exit.UNAVAILABLE, "edge_not_ready", text) from None

    async def _serves_or_ends(self) -> int | None:
        """None once it serves, or the status with which it ended before."""
        ended = asyncio.create_task(self.ended())
        serving = asyncio.create_task(self._serves())
        try:
            done, _ = await asyncio.wait((ended, serving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            serving.cancel()
        return ended.result() if ended in done else None

    def _failure(self, status: int) -> Failure:
        said = "; ".join(self._last_words) or "look at its log"
        return self._complaint or Failure(
            Exit.FAULT, "edge_failed", f"{self.name} ended with {status}: {said}"
        )

    async def _serves(self) -> None:
        await self._has_started.wait()
        while True:
            if await self._is_ready():
                return
            await asyncio.sleep(ASK_AGAIN_S)

    async def _is_ready(self) -> bool:
        if self.health is None:
            return False
        try:
            reader, writer = await asyncio.open_connection(*self.health)
        except OSError:
            return False
        try:
            writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
            answer = (await reader.read(ANSWER_BYTES)).decode("utf-8", "replace")
            self._unready = answer.rpartition("\r\n")[2].strip() or "it does not say why"
            return " 200 " in answer.partition("\r\n")[0]
        except OSError:
            return False
        finally:
            writer.close()

    # What it says

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while True:
            try:
                line = await process.stderr.readline()
            except ValueError:  # too long
                continue
            if not line:
                return
            self._hear(line)

    def _hear(self, line: bytes) -> None:
        event = logbook.read(line)
        if event is None:
            complaint = overheard(line)
            self._complaint = complaint or self._complaint
            text = complaint.message if complaint else line.decode("utf-8", "replace").rstrip()
            self._last_words = [*self._last_words, text][-LAST_WORDS:]
            log.debug("%s", text, extra={"action": "edge_said", "edge": self.name})
            return
        if event.get("setting") == ["health", "port"] and self._health_port is not None:
            self._health_port = event["port"]
        elif "setting" in event:  # of whatever listens, whether it is announced or not
            self._ports[tuple(event["setting"])] = event["port"]
        match event.get("action"):
            case "listening":
                self.places[event["listener"]] = (event["host"], event["port"])
            case "health_listening":
                self.health = (event["host"], event["port"])
            case "started":
                self._has_started.set()
        logbook.pass_on(event)

    # Its life

    async def ended(self) -> int:
        """Its exit status, once it has ended and was heard out."""
        assert self._process is not None
        assert self._reading is not None
        status = await self._process.wait()
        await asyncio.wait((self._reading,), timeout=1.0)  # a grandchild may hold the pipe open
        return status

    async def watch(self) -> None:
        """For ever: started again whenever it ends."""
        restarts = Restarts()
        while True:
            await self._start_again(await self.ended(), restarts)

    async def _start_again(self, status: int, restarts: Restarts) -> None:
        pause_s = restarts.pause_s()
        fields = {"action": "edge_restarted", "edge": self.name, "status": status, "restart_in_s": pause_s}
        log.error("%s ended: starting it again. %s", self.name, "; ".join(self._last_words), extra=fields)
        await asyncio.sleep(pause_s)
        with suppress(OSError):  # no memory, no processes left: it counts as one more end
            await self.start()
        restarts.started()

    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def tell(self, signum: signal.Signals) -> None:
        if self._process is not None and self.is_running():
            with suppress(ProcessLookupError):
                self._process.send_signal(signum)

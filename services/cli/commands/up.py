"""penstock up: the store, every edge and the console on this machine, under one process that starts them again and ends
them."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from services.cli.commands.console import console_settings, own_token
from services.cli.documents import declaring, documents
from services.cli.framework.command import Options, open_store, plain_command
from services.cli.framework.edge_flags import EdgeCommand
from services.cli.local import logbook
from services.cli.local.announcement import News, announce
from services.cli.local.console_process import ConsoleProcess
from services.cli.local.edge_process import EdgeProcess
from services.cli.local.health_ports import health_ports
from services.cli.local.own_store import OwnStore
from services.cli.terminal.exits import usage
from services.cli.terminal.failures import finish_output
from services.cli.terminal.output import Output
from services.kit import logs
from services.kit.config import GlobalSettings, LogSettings
from services.kit.edge import EdgeSettings, edges
from services.kit.stop import Stop
from services.kit.workers import longest_drain_s
from services.store import Store
from services.store.model import OutcomeUnknown, StoreUnavailable
from services.store.redis import Promises

log = logging.getLogger(__name__)
T = TypeVar("T")

QUEUES_FILE = Path("queues.yaml")
PROCESS_BYTES = 80 << 20  # of memory: an idle process has 57 MiB of its own, connections take more
MARGIN_S = 5.0  # beyond what an edge's drain may take; then it is killed
HURRIED_S = 5.0  # the same after a second signal
BACK_AGAIN_S = 30.0  # a store that died before everything was ready
DECLARE_AGAIN_S = 0.2
IN_ORDER = (0, -signal.SIGTERM)  # drained, or told to end before it had started


@click.command(cls=EdgeCommand)
@click.option(
    "--queues",
    type=click.Path(path_type=Path),
    help=f"queues and peers to declare  [./{QUEUES_FILE}, if there is one]",
)
@click.option(
    "--store-server", metavar="PROGRAM", help="a redis-server or valkey-server  [the one in the wheel]"
)
@click.option("--store-port", type=click.IntRange(1, 65535), help="let the store listen on 127.0.0.1, too")
@plain_command
def up(options: Options, queues: Path | None, store_server: str | None, store_port: int | None) -> int:
    """Run everything on this machine.

    That is a store with its data in --data-dir, every edge there is, the console, and the queues of queues.yaml.
    With --store (or REDIS_URL) they use that store, and none is started. Whatever dies is started again. Ctrl-C,
    SIGTERM, SIGQUIT, or the end of its terminal (SIGHUP) ends the edges in order, the store last; a second signal
    does not wait for clients.
    """
    logs.configure(_log_settings(options))
    own = None
    if options.settings.store.url is None:
        folder = options.folder
        folder.lock()
        others = processes(options.settings) * PROCESS_BYTES
        own = OwnStore.of(folder, options.settings, server=store_server, port=store_port or 0, others=others)
    elif store_server or store_port:
        raise usage(
            "--store-server and --store-port are for a store of our own: leave out --store and REDIS_URL"
        )
    return asyncio.run(Up(options, own, _queues_file(queues), store_port or 0).run())


def processes(settings: GlobalSettings) -> int:
    """Return how many processes run beside the store's server: this one, the console, and those of each edge.

    An edge with workers has two more, one that supervises and one for its health pages. Raises SettingsError.
    """
    workers: list[int] = [settings.edge(edge).workers for edge in edges().values()]
    return 2 + sum(number if number == 1 else number + 2 for number in workers)


def _log_settings(options: Options) -> LogSettings:
    """At a terminal, where nobody said otherwise: text, and only what somebody should look at."""
    settings = options.settings
    if not sys.stderr.isatty():
        return settings.log
    ours = {"format": "text", "level": "WARNING"}
    unsaid = {name: value for name, value in ours.items() if settings.origin("log", name) is None}
    return settings.log.model_copy(update=unsaid)


def _queues_file(given: Path | None) -> Path | None:
    if given is not None:
        return given
    return QUEUES_FILE if QUEUES_FILE.exists() else None


class Up:
    def __init__(self, options: Options, own: OwnStore | None, queues: Path | None, store_port: int) -> None:
        """Raises SettingsError, Failure: everything that can be known to be wrong before something is started."""
        self._options = options
        self._settings = options.settings
        self._own = own
        self._url = own.url if own is not None else options.store_url
        self._documents = documents.read_documents(queues) if queues is not None else []
        self._edge_settings: dict[str, EdgeSettings] = {
            name: self._settings.edge(edge) for name, edge in sorted(edges().items())
        }
        console = console_settings(options)
        others = [("127.0.0.1", store_port, "--store-port")]
        if console.enabled:
            others.append((console.host, console.port, "console.port"))
        self._is_health_port_set = self._settings.origin("health", "port") is not None
        self._health_ports = health_ports(self._settings.health, self._edge_settings, others)
        self._edges = [
            EdgeProcess(name, self._arguments(number, name), self._url, self._first_choice(number))
            for number, name in enumerate(self._edge_settings)
        ]
        self._console = self._own_console()
        self._processes = [*self._edges, *([self._console] if self._console is not None else [])]
        self._output = Output(as_json=options.as_json)

    def _own_console(self) -> ConsoleProcess | None:
        """Raises SettingsError."""
        settings = console_settings(self._options)
        if not settings.enabled:
            return None
        folder = ["--set", f"store.data_dir={json.dumps(str(self._options.folder.path))}"]
        number = len(self._edges)
        arguments = [*self._arguments(number, "console"), *folder]
        process = ConsoleProcess("console", arguments, self._url, self._first_choice(number))
        process.is_tls = settings.tls is not None
        process.token = own_token(self._options, settings)
        return process

    def _first_choice(self, number: int) -> int | None:
        """Return the health port of one process if it may move, as no setting has one."""
        return None if self._is_health_port_set else self._health_ports[number]

    def _arguments(self, number: int, name: str) -> list[str]:
        """Return the arguments of one process: the settings, its own port for health pages, its own flags."""
        options = self._options
        own = [f"health.port={self._health_ports[number]}"] if self._is_health_port_set else []
        pairs = [*options.pairs, *own]
        file = ["--config", str(options.file)] if options.file is not None else []
        return [
            *file,
            *(word for pair in pairs for word in ("--set", pair)),
            *(word for given in options.flags if given.edge == name for word in given.words),
            *logbook.child_settings(self._settings.log),
        ]

    async def run(self) -> int:
        """Until somebody asks us to stop, or something cannot be mended. Raises what `_work` raises.

        Answers 0, or 1 if an edge could not end in order.
        """
        stop = Stop()
        stop.listen_alone()
        work = asyncio.create_task(self._work())
        asked = asyncio.create_task(stop.drain.wait())
        try:
            await asyncio.wait((work, asked), return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
        finally:
            for task in (work, asked):
                task.cancel()
            await asyncio.gather(work, asked, return_exceptions=True)
            in_order = await self._down(stop)
        with suppress(OSError):  # the terminal may have gone, and with it the reason to end
            self._output.line("stopped")
        finish_output()
        return 0 if in_order else 1

    # The way up

    async def _work(self) -> None:
        promises = await self._start_store()
        works = [self._serve(promises)]
        if self._own is not None:
            works.append(self._own.watch())
        await _together(works)

    async def _serve(self, promises: Promises) -> None:
        changes = await self._declare()
        await _together([process.start() for process in self._processes])
        await _together([self._listen_in_turn(), *(process.ready() for process in self._processes)])
        declared = list(zip(self._documents, changes, strict=True))
        where = f"data in {self._options.folder.path}" if self._own else str(self._settings.store.url)
        news = News(where, promises, declared, self._edges, self._edge_settings, self._console)
        announce(self._output, news)
        await _together([process.watch() for process in self._processes])

    async def _listen_in_turn(self) -> None:
        """All that are started at one moment with the same ports try them in one order, so that one gets them all."""
        for process in self._processes:
            await process.listen()

    async def _start_store(self) -> Promises:
        if self._own is not None:
            return await self._own.start()
        store = open_store(self._url)
        try:
            await store.registry.epoch()
            return await store.promises.now()
        finally:
            await store.close()

    async def _declare(self) -> list[declaring.Change]:
        if not self._documents:
            return []
        store = open_store(self._url)
        try:
            return await self._apply(store)
        finally:
            await store.close()

    async def _apply(self, store: Store) -> list[declaring.Change]:
        """Planned once: what was made before a break is new all the same."""
        give_up = time.monotonic() + (BACK_AGAIN_S if self._own is not None else 0.0)
        changes = await _patiently(lambda: declaring.plan(store, self._documents), give_up)
        await _patiently(lambda: declaring.carry_out(store, self._documents, changes), give_up)
        return changes

    # The way down

    async def _down(self, stop: Stop) -> bool:
        """The edges first, so that they can settle and give back; then the store. True if all ended in order."""
        for process in self._processes:
            process.tell(signal.SIGTERM)
        ends = asyncio.gather(*(process.ended() for process in self._processes if process.is_running()))
        await self._wait(ends, stop)
        if self._own is not None:
            await self._own.stop()
        return all(status in IN_ORDER for status in ends.result())

    async def _wait(self, ends: asyncio.Future[list[int]], stop: Stop) -> None:
        """Until the edges have drained; somebody may be in a hurry, or an edge hang."""
        hurried = asyncio.create_task(stop.hurry.wait())
        limit_s = longest_drain_s(self._settings.drain) + MARGIN_S
        await asyncio.wait((ends, hurried), timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        if hurried.done() and not ends.done():
            for process in self._processes:
                process.tell(signal.SIGTERM)
            await asyncio.wait((ends,), timeout=HURRIED_S)
        hurried.cancel()
        if not ends.done():
            for process in self._processes:
                process.tell(signal.SIGKILL)
        await ends


async def _patiently(work: Callable[[], Coroutine[Any, Any, T]], give_up: float) -> T:
    """A store of our own that is killed meanwhile comes back. give_up: on the monotonic clock."""
    while True:
        try:
            return await work()
        except (StoreUnavailable, OutcomeUnknown):
            if time.monotonic() > give_up:
                raise
        await asyncio.sleep(DECLARE_AGAIN_S)


async def _together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """All at the same time; when one fails, none goes on behind our back."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

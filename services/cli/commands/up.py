"""Implement `penstock up`: run the store, all edges and the console on this machine."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from services.cli.commands.console import console_module, console_settings, own_token, serve_console
from services.cli.documents import documents
from services.cli.documents.declaring import Change
from services.cli.framework.bring_up import CHECKED, READY, BringUp
from services.cli.framework.command import Options, plain_command
from services.cli.framework.edge_flags import EdgeCommand
from services.cli.local.announcement import Announcement, Console, announce
from services.cli.local.child_process import EdgeProcess
from services.cli.local.health_ports import health_ports
from services.cli.local.own_store import OwnStore
from services.cli.terminal.exits import Exit, Failure, usage
from services.cli.terminal.failures import failure_for, finish_output
from services.cli.terminal.output import Output
from services.kit import logs
from services.kit.config import GlobalSettings, LogSettings, MovableHealthSettings, SecretUrl
from services.kit.edge import Edge, EdgeSettings, edges
from services.kit.startup import paused_gc
from services.kit.workers import Child, Policy, Role, Supervisor, forked, max_drain_s
from services.store import StoreError, StoreUnavailable
from services.store.model import Promises

log = logging.getLogger(__name__)

QUEUES_FILE = Path("queues.yaml")
# Memory of one process: 57 MiB of its own once it shares no pages with the others, and its connections.
PROCESS_BYTES = 80 << 20


@click.command(cls=EdgeCommand)
@click.option(
    "--queues",
    type=click.Path(path_type=Path),
    help=f"queues and peers to declare  [./{QUEUES_FILE}, if there is one]",
)
@click.option(
    "--store-server", metavar="PROGRAM", help="path of a redis-server or valkey-server  [the bundled one]"
)
@click.option(
    "--store-port", type=click.IntRange(1, 65535), help="let the store also listen on this port of 127.0.0.1"
)
@plain_command
def up(options: Options, queues: Path | None, store_server: str | None, store_port: int | None) -> int:
    """Run everything on this machine: store, all edges, console.

    The store keeps its data in --data-dir, and the queues of queues.yaml are declared. With --store (or REDIS_URL)
    the edges use that store instead. Processes that die are restarted. Ctrl-C, SIGTERM, SIGQUIT or SIGHUP drains the
    edges and stops the store last; a second signal stops without waiting for clients.
    """
    logs.configure(_log_settings(options))
    own = None
    if options.settings.store.url is None:
        folder = options.folder
        folder.lock()
        others = processes(options.settings) * PROCESS_BYTES
        own = OwnStore(folder, options.settings, server=store_server, port=store_port or 0, others=others)
    elif store_server or store_port:
        raise usage("--store-server and --store-port start a store: remove --store and REDIS_URL")
    return Up(options, own, _queues_file(queues), store_port or 0).run()


def processes(settings: GlobalSettings) -> int:
    """Return the number of processes besides the store: this one, the console, and those of each edge.

    An edge with several workers has two more: a supervisor and one for its health pages. Raises SettingsError.
    """
    workers: list[int] = [settings.edge(edge).workers for edge in edges().values()]
    return 2 + sum(number if number == 1 else number + 2 for number in workers)


def _log_settings(options: Options) -> LogSettings:
    """Return the log settings; at a terminal the defaults are text and warnings only."""
    settings = options.settings
    if not sys.stderr.isatty():
        return settings.log
    terminal = {"format": "text", "level": "WARNING"}
    unset = {name: value for name, value in terminal.items() if settings.origin("log", name) is None}
    return settings.log.model_copy(update=unset)


def _queues_file(given: Path | None) -> Path | None:
    if given is not None:
        return given
    return QUEUES_FILE if QUEUES_FILE.exists() else None


class Up(Policy):
    """The processes of `penstock up`: the store's server, a task that brings up the rest, the edges, the console."""

    def __init__(self, options: Options, own: OwnStore | None, queues: Path | None, store_port: int) -> None:
        """Validate everything that can be checked before a process starts. Raises SettingsError, Failure."""
        self._options = options
        self._own = own
        url = own.url if own is not None else options.store_url
        self._documents = documents.read_documents(queues) if queues is not None else []
        settings = options.settings
        known = dict(sorted(edges().items()))
        self._edge_settings: dict[str, EdgeSettings] = {
            name: settings.edge(edge) for name, edge in known.items()
        }
        console = console_settings(options)
        others = [("127.0.0.1", store_port, "--store-port")]
        if console.enabled:
            others.append((console.host, console.port, "console.port"))
        self._health_ports = health_ports(settings.health, self._edge_settings, others)
        store_settings = settings.store.model_copy(update={"url": SecretUrl(url)})
        self._settings = settings.model_copy(update={"store": store_settings, "log": _log_settings(options)})
        self._processes: list[EdgeProcess] = []
        self._bring_up = BringUp(own, url, self._documents, self._announce, self._processes)
        for edge in known.values():
            self._add(edge.name, ("serve", edge.name), partial(_serve_edge, edge))
        self._console = self._add_console() if console.enabled else None
        self._store = Child("store", self._launch_store, Role.BASE) if own is not None else None
        self._task = Child(
            "bring-up", forked(self._bring_up.work), Role.TASK, self._store, is_due=own is None
        )
        self._children = {Child(each.name, forked(each.work)): each for each in self._processes}
        self._output = Output(as_json=options.as_json)

    def _add(
        self, name: str, command: tuple[str, ...], serve: Callable[[GlobalSettings], int]
    ) -> EdgeProcess:
        """Add a process that opens its ports after the previous one has opened its own.

        With a fixed order, one of two simultaneous `penstock up` on the same ports gets all of them.
        """
        port, health = self._health_ports[len(self._processes)], self._settings.health
        if self._settings.origin("health", "port") is None:
            health = MovableHealthSettings(host=health.host, port=port)
        settings = self._settings.model_copy(update={"health": health.model_copy(update={"port": port})})
        before = self._processes[-1].log if self._processes else self._bring_up.log
        process = EdgeProcess(name, command, settings, serve, before)
        self._processes.append(process)
        return process

    def _add_console(self) -> Console:
        """Add the console's process. Raises SettingsError."""
        console = console_settings(self._options)

        def serve(settings: GlobalSettings) -> int:
            is_fixed = settings.origin("console", "port") is not None or bool(process.places)
            return serve_console(settings, as_json=True, may_move=not is_fixed)

        process = self._add("console", ("console",), serve)
        return Console(process, console.tls is not None, own_token(self._options, console))

    def _launch_store(self) -> int:
        """Start the store's server and return its pid. Raises Failure, or OSError if a later attempt may succeed."""
        assert self._own is not None
        try:
            server = self._own.launch()
        except (StoreError, OSError) as error:
            if not self._bring_up.log.has(READY):
                raise failure_for(error) from None
            raise OSError(str(error)) from None  # such as a missing program or too many processes
        server.returncode = 0  # the supervisor waits for the process, Popen must not
        return server.pid

    def run(self) -> int:
        """Run until a signal; return 0 after an orderly end, else 1. Raises Failure if restarts cannot help."""
        with paused_gc():  # before the fork, so that children share the memory
            import uvloop  # noqa: F401

            import services.cli.framework.serving  # noqa: F401

            if self._console is not None:
                console_module()
        store = [self._store] if self._store is not None else []
        children = [*store, self._task, *self._children]
        status = Supervisor(children, self, max_drain_s(self._settings.drain), Failure).run()
        with suppress(OSError):  # the terminal may be gone (SIGHUP)
            self._output.line("stopped")
        finish_output()
        return status

    def _announce(self, promises: Promises, changes: Sequence[Change]) -> None:
        declared = list(zip(self._documents, changes, strict=True))
        where = f"data in {self._options.folder.path}" if self._own else str(self._options.settings.store.url)
        edges = [process for process in self._processes if process.name in self._edge_settings]
        announcement = Announcement(where, promises, declared, edges, self._edge_settings, self._console)
        announce(self._output, announcement)

    # Policy

    def ended(self, child: Child, pid: int, status: int, *, stopping: bool) -> None:
        """Raise Failure if startup cannot succeed or the data is gone."""
        if stopping or status <= 0:
            return
        done = self._bring_up.log
        if child is self._store and not done.has(CHECKED):
            assert self._own is not None
            raise failure_for(StoreUnavailable(self._own.server.not_started()))
        if child is self._task or (child is not self._store and not done.has(READY)):
            raise self._failure(child) or Failure(
                Exit.FAULT, "edge_failed", f"{child.name} ended with {status}: see its log"
            )

    def restarting(self, child: Child, pid: int, status: int, pause_s: float) -> None:
        """Log the restart with its cause."""
        fields: dict[str, object] = {"status": status, "restart_in_s": pause_s}
        if child is self._store:
            assert self._own is not None
            why = self._own.server.complaint() if status > 0 else "restarting it"
            log.error("the store's server ended: %s", why, extra={"action": "store_restarted", **fields})
            return
        failure = self._failure(child) if status > 0 else None
        fields |= {"action": "edge_restarted", "edge": child.name}
        log.error("%s ended; restarting it. %s", child.name, failure or "", extra=fields)

    def _failure(self, child: Child) -> Failure | None:
        return (self._bring_up if child is self._task else self._children[child]).log.failure()


def _serve_edge(edge: Edge[Any], settings: GlobalSettings) -> int:
    from services.cli.framework.serving import serve_edge

    return serve_edge(edge, settings)

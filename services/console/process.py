"""What `penstock console` runs: the kit's process, with metrics, health pages and drain, around the HTTP server."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
import sys
from collections.abc import Callable
from functools import partial

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from pydantic import Field

from services.console.access import local_token
from services.console.access.identity import Identities
from services.console.app import App
from services.console.audit.audit import Audit
from services.console.core.console import Console
from services.console.figures import Figures
from services.console.history.history import History
from services.console.http.http_site import Door
from services.console.jobs.jobs import Jobs
from services.console.live.live import Live
from services.console.settings import ConsoleSettings
from services.kit import logs
from services.kit.config import GlobalSettings
from services.kit.edge import Edge, EdgeContext, EdgeSettings
from services.kit.metrics import LogLosses, QueueStates, ReportMetrics, StoreMemory
from services.kit.net import AddressInUse, ListenerSettings, ReloadableTlsContext, open_listening
from services.kit.process import EdgeProcess, run_process
from services.kit.readiness import Readiness
from services.kit.session import Peer
from services.store import StoreError
from services.store.catalogue import AuditLog
from services.store.redis import memory_of
from services.store.report import keep_reading
from services.store.upkeep import POLL_INTERVAL_S, copies_lost, poll_store, read_store_stats

log = logging.getLogger(__name__)

NAME = "console"  # in metrics, logs and session ids
LISTENER = "http"
SETTING = ("console", "port")
SERVER_LOG = "aiohttp.server"
LAST_ANSWERS_S = 5.0  # what is being answered when the process ends may take so long
ASK_STORE_S = 1.0


class PeersFaults(logging.Filter):
    """aiohttp logs what is no HTTP, and who goes too early, as if it were a fault of ours."""

    def __init__(self, refused: Callable[[str], None]) -> None:
        super().__init__()
        self._refused = refused

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ConnectionError):
            self._refused("connection_lost")
        elif isinstance(error, HttpProcessingError | web.RequestPayloadError):
            self._refused("bad_http")
        else:
            return True
        return False


class Hosted(EdgeSettings):
    """The console's settings where the kit looks for an edge's; it has listeners of its own."""

    listeners: dict[str, ListenerSettings] = Field(default_factory=dict)
    console: ConsoleSettings
    everything: GlobalSettings
    may_move: bool = False  # to any free port, where another program has the one of the settings
    as_json: bool = False  # what it prints


class Running:
    """The server, and what it works with."""

    def __init__(self, context: EdgeContext[Hosted]) -> None:
        """Raises SettingsError for files and addresses that cannot be used."""
        settings = context.settings.console
        store = settings.store.store(
            context.store_url, NAME, settings.request_timeout_s, context.metrics.store_observer
        )
        self._settings = settings
        self._may_move, self._as_json = context.settings.may_move, context.settings.as_json
        self._store = store
        figures = Figures(context.metrics)
        live = Live(store, settings.refresh_s)
        everything = context.settings.everything
        audit = Audit(AuditLog(store.registry, settings.audit_lines), figures.audit_failures.inc)
        jobs = Jobs(store, audit, live.touch)
        live.along(jobs.look)
        figures.jobs.set_function(lambda: len(jobs.running()))
        self.console = Console(
            settings, everything, store, live, jobs, audit, History(store), asyncio.Event()
        )
        figures.streams.set_function(lambda: self.console.streams)
        self.readiness = Readiness(catalogue=lambda: self._catalogue_fault)
        context.readiness.include(self.readiness)
        self._token = local_token.keep(everything.store.data_dir) if settings.is_local else None
        identities = Identities(settings, self._token)
        app = App(self.console, identities, figures, context.readiness).application()
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=LAST_ANSWERS_S
        )
        self._metrics = context.metrics
        self._filter = PeersFaults(context.metrics.count_refusal)
        logging.getLogger(SERVER_LOG).addFilter(self._filter)
        self._tls = None if settings.tls is None else ReloadableTlsContext(settings.tls, "console.tls")
        self._catalogue_fault: str | None = "the store was not asked yet"
        told = everything.metrics
        self._states = QueueStates(told.max_queues if told.queues else 0)
        self._memory = StoreMemory()
        self._losses = LogLosses()
        self._report = ReportMetrics()
        for collector in (self._states, self._memory, self._losses, self._report):
            context.metrics.registry.register(collector)
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Raises SettingsError."""
        sock = self._listening()
        await self._runner.setup()
        tls = _following(self._tls) if self._tls is not None else None
        await Door(self._runner, sock, self._settings, tls, self._metrics, LISTENER).start()
        host, port = sock.getsockname()[:2]
        fields = {
            "action": "listening",
            "listener": LISTENER,
            "host": host,
            "port": port,
            "tls": tls is not None,
            "setting": SETTING,
        }
        log.info("console on %s port %d", host, port, extra=fields)
        self._tell(f"{'https' if tls is not None else 'http'}://{Peer(host, port)}/")
        self.console.live.start()
        looks = poll_store(
            partial(read_store_stats, self._store.registry, self._store.listing),
            self._states.update,
            POLL_INTERVAL_S,
        )
        losses = poll_store(partial(copies_lost, self._store.domains), self._losses.update, POLL_INTERVAL_S)
        memory = poll_store(partial(memory_of, self._store.connector), self._memory.update, POLL_INTERVAL_S)
        reads = keep_reading(self._store.registry, self._report.update, POLL_INTERVAL_S)
        self._tasks = [
            asyncio.create_task(self._ask_store(), name="console readiness"),
            asyncio.create_task(looks, name="console queue states"),
            asyncio.create_task(losses, name="console losses of the log"),
            asyncio.create_task(memory, name="console memory of the store"),
            asyncio.create_task(reads, name="console report"),
            asyncio.create_task(self.console.jobs.lost.look_for_ever(), name="console lost jobs"),
        ]

    def _tell(self, url: str) -> None:
        """Say on standard output where the page is: to programs always, to people where it needs the link."""
        if self._as_json:
            token = None if self._token is None else str(self._token)
            print(json.dumps({"url": url, "tokenFile": token}), flush=True)
        elif self._token is not None:
            text = local_token.shown(url, self._token, at_terminal=sys.stdout.isatty())
            print(f"console: {text}", flush=True)

    def _listening(self) -> socket.socket:
        """Raises SettingsError."""
        settings = self._settings
        try:
            return open_listening(settings.host, settings.port, SETTING)
        except AddressInUse:
            if not self._may_move:
                raise
            return open_listening(settings.host, 0, SETTING)

    async def _ask_store(self) -> None:
        while True:
            try:
                await self._store.registry.epoch()
                self._catalogue_fault = None
            except StoreError as error:
                self._catalogue_fault = str(error)
            await asyncio.sleep(ASK_STORE_S)

    async def stop_taking(self) -> None:
        """Whoever watches is let go, and comes back to whoever is there then."""
        self.console.stopping.set()
        await self.console.jobs.close()
        await self._runner.cleanup()

    async def close(self) -> None:
        self.console.stopping.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._runner.cleanup()
        await self.console.jobs.close()  # none begins any more
        await self.console.live.close()
        await self.console.history.close()
        logging.getLogger(SERVER_LOG).removeFilter(self._filter)
        await self._store.close()


def _following(keeper: ReloadableTlsContext) -> ssl.SSLContext:
    """A context whose connections see renewed certificates: aiohttp keeps the one that it was given."""
    first = keeper.context

    def newest(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        keeper.refresh()
        connection.context = keeper.context

    first.sni_callback = newest
    return first


async def start(context: EdgeContext[Hosted]) -> Running:
    """Raises SettingsError."""
    running = Running(context)
    try:
        await running.open()
    except BaseException:
        await running.close()
        raise
    return running


def run(
    settings: GlobalSettings, console: ConsoleSettings, *, may_move: bool = False, as_json: bool = False
) -> int:
    """Until SIGTERM or SIGINT: 0 if it ended in order, else 1. Raises SettingsError, StoreError."""
    logs.configure(settings.log, edge=NAME)
    hosted = Edge(NAME, Hosted, start, lambda _: [])
    hosted_settings = Hosted(console=console, everything=settings, may_move=may_move, as_json=as_json)
    return run_process(EdgeProcess(hosted, settings, hosted_settings))

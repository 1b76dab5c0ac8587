"""The options that all commands share, and the wrapper that opens the store for a command."""

from __future__ import annotations

import asyncio
import functools
import math
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from services.cli.framework.edge_flags import given_flags
from services.cli.local.folder import Folder
from services.cli.terminal.exits import Exit, Failure
from services.kit.config import GivenFlag, GlobalSettings, SecretUrl, SettingsError, load, merge, read_flags
from services.kit.startup import paused_gc
from services.kit.startup_sigterm import stop_signals
from services.kit.tracing import tracing
from services.outside.url import BadUrl
from services.store import PipeSettings, Store
from services.store.pipeline import Timing
from services.store.redis import StoreUrl, check_files
from services.store.tracing import Observer

NAME = "cli"  # in session ids, origins and traces
TIMEOUT_S = 30.0
BEAT_S = 1.0  # heartbeat interval, independent of the edges' settings
Tree = dict[str, Any]
Callback = Callable[..., int | None]  # an exit code; None means 0
UrlCheck = Callable[[StoreUrl], None]  # raises BadUrl
StoreWork = Callable[..., Awaitable[None]]  # (store, output, **arguments)


class Seconds(click.FloatRange):
    """A finite number of seconds: click's ranges let NaN through."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert the value. Fails as click does for text, NaN, and numbers out of range."""
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


@dataclass(frozen=True, slots=True)
class Options:
    """The options that all commands share, and the settings they lead to."""

    settings: GlobalSettings
    file: Path | None
    pairs: tuple[str, ...]  # values of --set
    as_json: bool
    flags: tuple[GivenFlag, ...] = ()  # of edges

    @property
    def folder(self) -> Folder:
        """Return the data folder of `penstock up`."""
        return Folder(self.settings.store.data_dir)

    @property
    def store_url(self) -> str:
        """Return the store's URL with its password. Raises Failure if there is no store."""
        if self.settings.store.url is not None:
            return self.settings.store.url.reveal()
        tenant = self.folder.tenant()
        if tenant is None:
            raise Failure(
                Exit.UNAVAILABLE,
                "no_store",
                f"no `penstock up` runs on {self.folder.path}: start one, or name a store with --store or REDIS_URL",
            )
        if not tenant.url:
            raise Failure(
                Exit.UNAVAILABLE, "starting", f"the store of pid {tenant.pid} is still starting: try again"
            )
        return tenant.url

    def with_store(self) -> GlobalSettings:
        """Return the settings with the URL of the store that was found."""
        section = self.settings.store.model_copy(update={"url": SecretUrl(self.store_url)})
        return self.settings.model_copy(update={"store": section})

    def with_health_port(self, health_port: int) -> GlobalSettings:
        """Return the same with this default for `health.port`, for services beside the edges of a `penstock up`."""
        settings = self.with_store()
        if self.settings.origin("health", "port") is not None:
            return settings
        return settings.model_copy(
            update={"health": settings.health.model_copy(update={"port": health_port})}
        )


def options_from(values: Tree, check: UrlCheck = check_files) -> Options:
    """Take the shared options out of a command's arguments. Raises SettingsError."""
    pairs: tuple[str, ...] = values.pop("pairs")
    flags = read_flags(pairs)
    url, data_dir, file = values.pop("store_url"), values.pop("data_dir"), values.pop("config_file")
    if data_dir is not None:  # --data-dir overrides REDIS_URL
        flags = merge(flags, {"store": {"data_dir": str(data_dir), "url": None}})
    if url is not None:
        flags = merge(flags, {"store": {"url": url}})
    given = given_flags()
    settings = load(file, flags, given)
    _check_store(settings, check)
    return Options(settings, file, pairs, values.pop("as_json"), given)


def _check_store(settings: GlobalSettings, check: UrlCheck) -> None:
    """Check the store URL, also where the command does not need the store. Raises SettingsError."""
    try:
        check(StoreUrl.parse(settings.store_url))
    except BadUrl as error:
        origin = settings.origin("store", "url")
        raise SettingsError([f"store.url: {error} (from {origin})"]) from None


_SHARED = (
    click.option("--store", "store_url", metavar="URL", help="URL of the store, such as redis://host:6379/0"),
    click.option(
        "--data-dir", type=click.Path(path_type=Path), help="data folder of `penstock up`  [./penstock-data]"
    ),
    click.option(
        "--config", "config_file", type=click.Path(path_type=Path), help="settings file  [./penstock.yaml]"
    ),
    click.option(
        "--set", "pairs", multiple=True, metavar="SECTION.FIELD=VALUE", help="set one setting; repeatable"
    ),
    click.option("--json", "as_json", is_flag=True, help="write one JSON object per line"),
)


def plain_command(work: Callback, check: UrlCheck = check_files) -> Callback:
    """Turn work(options, **arguments) into a click callback. check: validates the parsed store URL."""

    @functools.wraps(work)
    def command(**values: Any) -> int | None:
        try:
            options = options_from(values, check)
            click.get_current_context().obj = options
            return work(options, **values)
        except BrokenPipeError:  # before click handles it
            raise Failure(Exit.BROKEN_PIPE, "broken_pipe", "") from None

    for option in reversed(_SHARED):
        command = option(command)
    return command


def store_command(work: StoreWork) -> Callback:
    """Turn async work(store, output, **arguments) into a click callback that opens and closes the store."""

    @click.option(
        "--timeout",
        type=Seconds(0.1, 3600),
        default=TIMEOUT_S,
        show_default=True,
        metavar="SECONDS",
        help="how long to wait for the store to answer",
    )
    @functools.wraps(work)
    def command(options: Options, timeout: float, **values: Any) -> None:
        asyncio.run(with_store(options, timeout, work, values))

    return plain_command(command)


async def with_store(
    options: Options, timeout: float, work: StoreWork, values: Tree, silence: float | None = None
) -> None:
    """Run the work with an open store. silence: seconds that one request may take, if less than the timeout."""
    with paused_gc():  # loads rich, which services do not need
        from services.cli.terminal.output import Output

    task = asyncio.current_task()
    assert task is not None
    for signum in stop_signals():
        if signum in (signal.SIGTERM, signal.SIGHUP):  # asyncio.run cancels the task on Ctrl-C by itself
            asyncio.get_running_loop().add_signal_handler(signum, task.cancel)
    timeouts = _pipe_timeouts(timeout, timeout if silence is None else silence)
    recorder = tracing(options.settings.tracing, NAME)
    store = open_store(options.store_url, timeouts, Observer(recorder))
    if recorder is not None:
        recorder.start()
    try:
        await work(store, Output(as_json=options.as_json), **values)
    finally:
        await store.close()
        if recorder is not None:
            await recorder.close()


def _pipe_timeouts(timeout_s: float, silence_s: float) -> PipeSettings:
    defaults = PipeSettings()
    return PipeSettings(
        patience_s=silence_s,
        reply_timeout_s=min(defaults.reply_timeout_s, timeout_s / 2),
        call_deadline_s=min(defaults.call_deadline_s, timeout_s),
        request_timeout_s=timeout_s,
        question_timeout_s=silence_s,
    )


def open_store(url: str, timeouts: PipeSettings | None = None, observer: Observer | None = None) -> Store:
    """Return the store; it connects on first use."""
    return Store(url, NAME, pipe=timeouts, timing=Timing(beat_s=BEAT_S), observe=observer or Observer())

"""What every command takes, and the frame in which those that need the store run."""

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

NAME = "cli"  # in session ids and origins, and of what is traced
TIMEOUT_S = 30.0
BEAT_S = 1.0  # however short a silence the edges' settings allow a session
Tree = dict[str, Any]
Callback = Callable[..., int | None]  # an exit code, if it is not simply 0
UrlCheck = Callable[[StoreUrl], None]  # raises BadUrl
StoreWork = Callable[..., Awaitable[None]]  # (store, output, **arguments)


class Seconds(click.FloatRange):
    """A time that is a number: click lets NaN through any range."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


@dataclass(frozen=True, slots=True)
class Options:
    """The options that all commands share, and the settings they lead to."""

    settings: GlobalSettings
    file: Path | None
    pairs: tuple[str, ...]  # of --set, as they were given
    as_json: bool
    flags: tuple[GivenFlag, ...] = ()  # of edges

    @property
    def folder(self) -> Folder:
        return Folder(self.settings.store.data_dir)

    @property
    def store_url(self) -> str:
        """With its password. Raises Failure where there is no store."""
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
        """The settings with the store that was found in them."""
        section = self.settings.store.model_copy(update={"url": SecretUrl(self.store_url)})
        return self.settings.model_copy(update={"store": section})

    def beside_others(self, health_port: int) -> GlobalSettings:
        """The same; where nobody said a port for the health pages: one that no edge of a `penstock up` here has."""
        settings = self.with_store()
        if self.settings.origin("health", "port") is not None:
            return settings
        return settings.model_copy(
            update={"health": settings.health.model_copy(update={"port": health_port})}
        )


def options_from(values: Tree, check: UrlCheck = check_files) -> Options:
    """Takes the shared options out of a command's arguments. Raises SettingsError."""
    pairs: tuple[str, ...] = values.pop("pairs")
    flags = read_flags(pairs)
    url, data_dir, file = values.pop("store_url"), values.pop("data_dir"), values.pop("config_file")
    if data_dir is not None:  # whoever names a folder here means its store, whatever the environment says
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
    click.option("--store", "store_url", metavar="URL", help="the store, as redis://host:6379/0"),
    click.option(
        "--data-dir", type=click.Path(path_type=Path), help="folder of `penstock up`  [./penstock-data]"
    ),
    click.option(
        "--config", "config_file", type=click.Path(path_type=Path), help="settings file  [./penstock.yaml]"
    ),
    click.option(
        "--set", "pairs", multiple=True, metavar="SECTION.FIELD=VALUE", help="one setting; repeatable"
    ),
    click.option("--json", "as_json", is_flag=True, help="for programs: one JSON object a line"),
)


def plain_command(work: Callback, check: UrlCheck = check_files) -> Callback:
    """Makes of work(options, **arguments) what click calls. check: of the store URL, once it is parsed."""

    @functools.wraps(work)
    def command(**values: Any) -> int | None:
        try:
            options = options_from(values, check)
            click.get_current_context().obj = options
            return work(options, **values)
        except BrokenPipeError:  # click has its own idea of how that ends
            raise Failure(Exit.BROKEN_PIPE, "broken_pipe", "") from None

    for option in reversed(_SHARED):
        command = option(command)
    return command


def store_command(work: StoreWork) -> Callback:
    """Makes of `async work(store, output, **arguments)` what click calls, with the store open around it."""

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
    """silence: seconds that one question to the store may take, if that is less than the timeout."""
    with paused_gc():  # brings rich along: processes that serve do not wait for that
        from services.cli.terminal.output import Output

    task = asyncio.current_task()
    assert task is not None
    for signum in stop_signals():
        if signum in (
            signal.SIGTERM,
            signal.SIGHUP,
        ):  # what is leased goes back; Ctrl-C does the same by itself
            asyncio.get_running_loop().add_signal_handler(signum, task.cancel)
    waits = _waits(timeout, timeout if silence is None else silence)
    recorder = tracing(options.settings.tracing, NAME)
    store = open_store(options.store_url, waits, Observer(recorder))
    if recorder is not None:
        recorder.start()
    try:
        await work(store, Output(as_json=options.as_json), **values)
    finally:
        await store.close()
        if recorder is not None:
            await recorder.close()


def _waits(timeout_s: float, silence_s: float) -> PipeSettings:
    usual = PipeSettings()
    return PipeSettings(
        patience_s=silence_s,
        reply_timeout_s=min(usual.reply_timeout_s, timeout_s / 2),
        call_deadline_s=min(usual.call_deadline_s, timeout_s),
        request_timeout_s=timeout_s,
        question_timeout_s=silence_s,
    )


def open_store(url: str, waits: PipeSettings | None = None, observer: Observer | None = None) -> Store:
    """Nothing is connected yet."""
    return Store(url, NAME, pipe=waits, timing=Timing(beat_s=BEAT_S), observe=observer or Observer())

"""penstock sysv."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from services.cli.framework.command import Options, plain_command
from services.cli.terminal.exits import Exit, Failure, usage
from services.kit.config import merge
from services.sysv.settings import Direction, Format, SysvSettings

if TYPE_CHECKING:
    from services.kit.config import Tree

HEALTH_PORT = 9171


@click.command()
@click.option("--in", "into", multiple=True, metavar="KEY:QUEUE", help="out of QUEUE, into the local queue")
@click.option("--out", multiple=True, metavar="KEY:QUEUE", help="out of the local queue, into QUEUE")
@click.option("--out-t-msg", multiple=True, metavar="KEY:QUEUE", help="the same with T_MSGs of RQP/cast")
@click.option("--mode", metavar="MODE", help="of local queues that are made for these  [0600]")
@click.option("--remove-on-exit", is_flag=True, help="remove the local queues that it made")
@plain_command
def sysv(options: Options, **given: Any) -> int:
    """Join System V queues of this machine with queues of the store.

    What is joined stands in the settings, or is given here: mappings of the command line replace those of the
    settings. Until SIGTERM or Ctrl-C; then what is under way is finished. Ends with 2 if the mappings cannot be
    used: a permission is missing, another bridge has them, messages would go round.
    """
    settings = _settings(options, _said(given))
    process = _process()
    try:
        return int(process.run(options.beside_others(HEALTH_PORT), settings))
    except process.Unusable as error:
        raise Failure(Exit.USAGE, error.reason, str(error)) from None


def _process() -> Any:
    """The part that needs more than the rest of the command line does."""
    try:
        from services.sysv import process
    except ImportError as error:
        if error.name != "sysv_ipc":
            raise
        text = (
            "this installation lacks sysv_ipc: install Penstock with the extra `sysv`, from the checkout or the wheel "
            "that it came from"
        )
        raise Failure(Exit.USAGE, "no_sysv_ipc", text) from None
    return process


def _settings(options: Options, said: Tree) -> SysvSettings:
    """Raises SettingsError."""
    return options.settings.section(SysvSettings, "sysv", said)


def _said(given: dict[str, Any]) -> Tree:
    """What the command line says of the section."""
    mappings: Tree = {}
    for flag, direction, kind, texts in (
        ("in", Direction.IN, Format.RAW, given["into"]),
        ("out", Direction.OUT, Format.RAW, given["out"]),
        ("out-t-msg", Direction.OUT, Format.T_MSG, given["out_t_msg"]),
    ):
        for text in texts:
            key, colon, queue = text.partition(":")
            if not colon:
                raise usage(f"write KEY:QUEUE, as in 0x2a:orders, not {text!r}")
            mapping = {"key": key, "queue": queue, "direction": direction.value, "format": kind.value}
            mappings[f"{flag}-{key}-{queue}"] = {**mapping, **_mode(given["mode"])}
    if given["mode"] and not mappings:
        raise usage("--mode goes with --in and --out; the settings say the modes of their own mappings")
    said: Tree = {"mappings": mappings} if mappings else {}
    return merge(said, {"remove_on_exit": True} if given["remove_on_exit"] else {})


def _mode(mode: str | None) -> Tree:
    return {"mode": mode} if mode else {}

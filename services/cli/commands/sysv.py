"""Implement `penstock sysv`."""

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
@click.option(
    "--in", "into", multiple=True, metavar="KEY:QUEUE", help="move messages from QUEUE to the local queue"
)
@click.option("--out", multiple=True, metavar="KEY:QUEUE", help="move messages from the local queue to QUEUE")
@click.option("--out-t-msg", multiple=True, metavar="KEY:QUEUE", help="as --out, for T_MSGs of RQP/cast")
@click.option("--mode", metavar="MODE", help="permissions of local queues that it creates  [0600]")
@click.option("--remove-on-exit", is_flag=True, help="remove the local queues that it created")
@plain_command
def sysv(options: Options, **given: Any) -> int:
    """Bridge System V message queues of this machine and queues of the store.

    The mappings come from the settings, or from these options, which replace all of them. Runs until SIGTERM or
    Ctrl-C, then finishes the messages in transfer. Ends with 2 if the mappings cannot be used: a permission is
    missing, another bridge uses them, or messages would loop.
    """
    settings = options.settings.section(SysvSettings, "sysv", _mappings_given(given))
    process = _process()
    try:
        return int(process.run(options.with_health_port(HEALTH_PORT), settings))
    except process.Unusable as error:
        raise Failure(Exit.USAGE, error.reason, str(error)) from None


def _process() -> Any:
    """Import the bridge, which needs sysv_ipc. Raises Failure without it."""
    try:
        from services.sysv import process
    except ImportError as error:
        if error.name != "sysv_ipc":
            raise
        text = (
            "sysv_ipc is not installed: install Penstock with the extra `sysv`, from the checkout or the wheel that it "
            "came from"
        )
        raise Failure(Exit.USAGE, "no_sysv_ipc", text) from None
    return process


def _mappings_given(given: dict[str, Any]) -> Tree:
    """Return the part of the section `sysv` that the options set."""
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
            mappings[f"{flag}-{key}-{queue}"] = mapping | ({"mode": given["mode"]} if given["mode"] else {})
    if given["mode"] and not mappings:
        raise usage("--mode requires --in or --out; mappings of the settings have a mode of their own")
    section: Tree = {"mappings": mappings} if mappings else {}
    return merge(section, {"remove_on_exit": True} if given["remove_on_exit"] else {})

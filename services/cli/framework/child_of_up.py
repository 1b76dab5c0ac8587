"""What `serve` and `console` do as children of `penstock up`: end with it, and open their ports in its order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from services.cli.framework.command import Options
from services.kit.config import GlobalSettings, MovableHealthSettings


def child_options(work: Callable[..., Any]) -> Callable[..., Any]:
    """Add the hidden options that `penstock up` starts a command with."""
    parent = click.option("--parent", type=int, hidden=True, help="the pid to die with")
    port = click.option(
        "--health-port", type=int, hidden=True, help="the first choice, where no setting has one"
    )
    return parent(port(work))


def await_turn(parent: int | None) -> None:
    """Wait until the parent closes standard input: from then on this process may open its ports."""
    if parent is not None:
        sys.stdin.buffer.read()


def child_settings(options: Options, health_port: int) -> GlobalSettings:
    """Return the settings with the store, and with a health port that may be any free one if `health_port` is taken."""
    settings = options.with_store()
    health = MovableHealthSettings(host=settings.health.host, port=health_port)
    return settings.model_copy(update={"health": health})

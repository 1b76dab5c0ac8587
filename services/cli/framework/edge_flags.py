"""Add the options that edges define to the commands that serve them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from services.kit.config import Flag, GivenFlag

if TYPE_CHECKING:
    from services.kit.edge import Edge

_OPTIONS, _GIVEN = "penstock.edge_flags", "penstock.given_flags"  # in the context's `meta`


class EdgeCommand(click.Command):
    """A command with the options of all edges besides its own; edges are loaded only when it is called."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options and those of all edges."""
        from services.kit.edge import edges  # loads every edge, which would slow other commands down

        if _OPTIONS not in ctx.meta:
            ctx.meta[_OPTIONS] = [_option(edge, flag) for edge in edges().values() for flag in edge.flags]
        return [*super().get_params(ctx), *ctx.meta[_OPTIONS]]


def given_flags() -> tuple[GivenFlag, ...]:
    """Return the edge options that the current command was called with."""
    return tuple(click.get_current_context().meta.get(_GIVEN, ()))


def _option(edge: Edge[Any], flag: Flag) -> click.Option:
    return click.Option(
        [flag.name],
        multiple=flag.repeatable,
        metavar=flag.metavar,
        help=f"{edge.name}: {flag.help}" + ("; repeatable" if flag.repeatable else ""),
        expose_value=False,
        callback=partial(_note, edge.name, flag),
    )


def _note(edge: str, flag: Flag, ctx: click.Context, _: click.Parameter, value: Any) -> None:
    values = value if flag.repeatable else () if value is None else (value,)
    if values:
        ctx.meta.setdefault(_GIVEN, []).append(GivenFlag(edge, flag, tuple(values)))

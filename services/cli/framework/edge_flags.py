"""The flags of edges on commands that serve them: found with the edges, so that no command knows any."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from services.kit.config import GivenFlag

if TYPE_CHECKING:
    from services.kit.edge import Edge
from services.kit.config import Flag

_OPTIONS, _GIVEN = "penstock.edge_flags", "penstock.given_flags"  # in the context's `meta`


class EdgeCommand(click.Command):
    """Takes the flags of all edges beside its own options. They are looked for when it is called, not before."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        from services.kit.edge import edges  # brings every edge along: no other command waits for that

        if _OPTIONS not in ctx.meta:
            ctx.meta[_OPTIONS] = [_option(edge, flag) for edge in edges().values() for flag in edge.flags]
        return [*super().get_params(ctx), *ctx.meta[_OPTIONS]]


def given_flags() -> tuple[GivenFlag, ...]:
    """Those that the command under way was called with."""
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

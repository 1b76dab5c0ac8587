"""Implement `penstock serve`: run one edge in the foreground."""

from __future__ import annotations

import click

from services.cli.framework.command import Options, plain_command
from services.cli.framework.edge_flags import EdgeCommand
from services.cli.terminal.exits import usage
from services.kit.edge import edges
from services.kit.startup import paused_gc


@click.command(cls=EdgeCommand)
@click.argument("edge")
@click.option(
    "--workers", type=click.IntRange(1, 256), help="number of processes  [as in the edge's settings]"
)
@plain_command
def serve(options: Options, edge: str, workers: int | None) -> int:
    """Serve one EDGE, such as tmq.

    Runs until SIGTERM, Ctrl-C, SIGQUIT or SIGHUP, then drains and ends with 0. Ends with 1 after a failure, or if a
    second signal cut the drain short, and with 2 if its settings cannot be used.
    """
    known = edges()
    if edge not in known:
        raise usage(f"there is no edge {edge!r}; edges are: {', '.join(sorted(known))}")
    for given in options.flags:
        if given.edge != edge:
            raise usage(f"{given.flag.name} is an option of {given.edge}, not of {edge}")
    with paused_gc():  # loads a web server, which would slow other commands down
        from services.cli.framework.serving import serve_edge

    return serve_edge(known[edge], options.with_store(), workers)

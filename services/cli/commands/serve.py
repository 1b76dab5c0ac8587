"""penstock serve: one edge in the foreground."""

from __future__ import annotations

import click

from services.cli.framework.command import Options, plain_command
from services.cli.framework.edge_flags import EdgeCommand
from services.cli.terminal.exits import usage
from services.kit.edge import edges
from services.kit.startup import paused_gc


@click.command(cls=EdgeCommand)
@click.argument("edge")
@click.option("--workers", type=click.IntRange(1, 256), help="processes  [what the edge's settings say]")
@plain_command
def serve(options: Options, edge: str, workers: int | None) -> int:
    """Serve one EDGE, such as tmq.

    Until SIGTERM, Ctrl-C, SIGQUIT or the end of its terminal (SIGHUP); then it drains and ends with 0. Ends with 1
    if it was hurried by a second signal or failed, with 2 if its settings cannot be used.
    """
    known = edges()
    if edge not in known:
        raise usage(f"there is no edge {edge!r}; there is: {', '.join(sorted(known))}")
    for given in options.flags:
        if given.edge != edge:
            raise usage(f"{given.flag.name} is a flag of {given.edge}, not of {edge}")
    with paused_gc():  # brings a web server along: no other command waits for that
        from services.cli.framework.serving import serve_edge

    return serve_edge(known[edge], options.with_store(), workers)

"""penstock serve: one edge in the foreground."""

from __future__ import annotations

import click

from services.cli.framework.child_of_up import await_turn, child_options, child_settings
from services.cli.framework.command import Options, plain_command
from services.cli.framework.edge_flags import EdgeCommand
from services.cli.terminal.exits import usage
from services.kit.edge import edges
from services.kit.startup import importing
from services.system.pdeathsig import die_with_parent


@click.command(cls=EdgeCommand)
@click.argument("edge")
@click.option("--workers", type=click.IntRange(1, 256), help="processes  [what the edge's settings say]")
@child_options
@plain_command
def serve(
    options: Options, edge: str, workers: int | None, parent: int | None, health_port: int | None
) -> int:
    """Serve one EDGE, such as tmq.

    Until SIGTERM, Ctrl-C, SIGQUIT or the end of its terminal (SIGHUP); then it drains and ends with 0. Ends with 1
    if it was hurried by a second signal or failed, with 2 if its settings cannot be used.
    """
    if parent is not None:
        die_with_parent(parent)
    known = edges()
    if edge not in known:
        raise usage(f"there is no edge {edge!r}; there is: {', '.join(sorted(known))}")
    for given in options.flags:
        if given.edge != edge:
            raise usage(f"{given.flag.name} is a flag of {given.edge}, not of {edge}")
    with importing():  # brings a web server along: no other command waits for that
        from services.cli.framework.serving import serve_edge

    settings = options.with_store() if health_port is None else child_settings(options, health_port)
    await_turn(parent)
    return serve_edge(known[edge], settings, workers)

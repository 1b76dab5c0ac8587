"""penstock store: init, rights."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from services.cli.command import Options, open_store, plain_command
from services.cli.exits import Exit, Failure
from services.cli.output import Output
from services.cli.own_store import OwnStore
from services.store.probe import Promises
from services.store.rights import acl_rules, analytics_rules


@click.group()
def store() -> None:
    """Set up a store."""


@store.command()
@click.option("--accept-loss", is_flag=True, help="the data that is missing will not come back: begin anew")
@click.option("--store-server", metavar="PROGRAM", help="with --data-dir: a redis-server or valkey-server")
@plain_command
def init(options: Options, accept_loss: bool, store_server: str | None) -> None:
    """Set the store up, or bring it up to date.

    Loads our functions, writes down what it can promise, begins a data set if it has none. Needs an
    administrator's rights there. May be repeated, and has to be after an upgrade of penstock or of the store.
    Without a store's URL it works on the folder of a stopped `penstock up`.
    """
    if options.settings.store.url is not None or options.folder.tenant() is not None:
        promises = asyncio.run(_init(options.store_url, accept_loss))
    else:
        promises = _init_folder(options, accept_loss, store_server)
    output = Output(as_json=options.as_json)
    described: dict[str, Any] = {
        "server": promises.server,
        "version": promises.version,
        "levels": promises.levels(),
    }
    output.line(f"{promises.server} {promises.version} is set up; ack levels: {', '.join(promises.levels())}")
    if output.as_json:
        output.record(described)


RULES = {"edge": acl_rules, "analytics": analytics_rules}


@store.command()
@click.option(
    "--for", "whom", type=click.Choice([*RULES]), default="edge", show_default=True, help="for whom"
)
@click.option("--user", default=None, help="name of the user  [as --for]")
@plain_command
def rights(options: Options, whom: str, user: str | None) -> None:
    """Print the ACL line that makes a user for edges, or for the analytics job, with no more rights than they need.

    Give it to redis-cli with a password added, as in `>secret`, and put user and password into the URL.
    """
    output = Output(as_json=options.as_json)
    name, rules = user or whom, RULES[whom]()
    output.line(" ".join(["ACL SETUSER", name, *rules]))
    if output.as_json:
        output.record({"user": name, "rules": rules})


async def _init(url: str, accept_loss: bool) -> Promises:
    opened = open_store(url)
    try:
        return await opened.initialise(accept_loss=accept_loss)
    finally:
        await opened.close()


def _init_folder(options: Options, accept_loss: bool, store_server: str | None) -> Promises:
    folder = options.folder
    if not folder.path.exists():
        raise Failure(
            Exit.UNAVAILABLE,
            "no_store",
            f"there is no {folder.path}: name a store with --store, or run `penstock up`",
        )
    folder.lock()
    return asyncio.run(_init_own(OwnStore.of(folder, options.settings, server=store_server), accept_loss))


async def _init_own(own: OwnStore, accept_loss: bool) -> Promises:
    try:
        return await own.start(accept_loss=accept_loss)
    finally:
        await own.stop()

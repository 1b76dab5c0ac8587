"""Implement `penstock store`: init, rights."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from services.cli.framework.command import Options, open_store, plain_command
from services.cli.local.own_store import OwnStore
from services.cli.terminal.exits import Exit, Failure, usage
from services.cli.terminal.output import Output
from services.store.model import Promises
from services.store.redis import Applied, acl_rules, analytics_rules, apply_user


@click.group()
def store() -> None:
    """Set up a store."""


@store.command()
@click.option(
    "--accept-loss", is_flag=True, help="accept that the missing data is lost, and start a new dataset"
)
@click.option(
    "--store-server", metavar="PROGRAM", help="with --data-dir: path of a redis-server or valkey-server"
)
@plain_command
def init(options: Options, accept_loss: bool, store_server: str | None) -> None:
    """Set up the store, or upgrade it.

    Loads Penstock's functions, records the ack levels that the store supports, and starts a dataset if there is
    none. Needs administrator rights on the store. Can be repeated; run it after each upgrade of Penstock or of the
    store. Without a store URL it works on the data folder of a stopped `penstock up`.
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
    "--for", "whom", type=click.Choice([*RULES]), default="edge", show_default=True, help="kind of user"
)
@click.option("--user", default=None, help="user name  [as --for]")
@click.option("--apply", "applies", is_flag=True, help="create the user on every server of the store")
@click.option(
    "--password-file",
    type=click.Path(path_type=Path),
    help="with --apply: file with the password; - for stdin",
)
@plain_command
def rights(options: Options, whom: str, user: str | None, applies: bool, password_file: Path | None) -> None:
    """Print the ACL command for a user with the minimal rights for edges or the analytics job.

    Run it in redis-cli with a password added, as in `>secret`, and put user and password into the store URL. Redis does
    not replicate users: --apply creates the user on every server that the Sentinels or the Cluster report.
    """
    output = Output(as_json=options.as_json)
    name, rules = user or whom, RULES[whom]()
    if applies != (password_file is not None):
        raise usage("--apply and --password-file FILE require each other")
    if password_file is not None:
        password = _password(password_file)
        applied = asyncio.run(_apply(options.store_url, name, rules, password))
        _report_applied(output, name, applied)
        return
    output.line(" ".join(["ACL SETUSER", name, *rules]))
    if output.as_json:
        output.record({"user": name, "rules": rules})


def _password(path: Path) -> str:
    try:
        text = (sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()).decode().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(Exit.USAGE, "bad_password", f"{path} cannot be read: {error}") from None
    if not text:
        raise Failure(Exit.USAGE, "bad_password", f"{path} is empty: write the user's password to it")
    return text


async def _apply(url: str, name: str, rules: list[str], password: str) -> list[Applied]:
    opened = open_store(url)
    try:
        return await apply_user(opened.connector, name, rules, password)
    finally:
        await opened.close()


def _report_applied(output: Output, name: str, applied: list[Applied]) -> None:
    for one in applied:
        output.line(f"{one.server}: " + (one.fault or f"user {name} is set, stored {one.kept}"))
        if output.as_json:
            output.record({"user": name, **asdict(one)})
    if failed := [one.server for one in applied if one.fault]:
        text = f"{', '.join(failed)}: user {name} could not be set there; repeat until every server has it"
        raise Failure(Exit.REFUSED, "user_not_set", text)


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
    own = OwnStore(folder, options.settings, server=store_server)
    if accept_loss:
        folder.forget()
    server = own.launch()
    try:
        return asyncio.run(own.check(server, accept_loss=accept_loss))
    finally:
        server.terminate()
        server.wait()

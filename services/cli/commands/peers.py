"""Implement `penstock peer`: apply, list, show, delete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from services.cli.documents.applying import apply_file, file_option
from services.cli.framework.command import store_command
from services.cli.terminal.exits import not_found
from services.cli.terminal.output import Output
from services.store import Store
from services.store.model import Peer, Unreadable, to_peer_document


@click.group()
def peer() -> None:
    """Manage peers: the remote systems that messages go to and come from."""


@peer.command()
@file_option(Path("peers.yaml"))
@click.option("--dry-run", is_flag=True, help="only show what would change")
@store_command
async def apply(store: Store, output: Output, file: Path, dry_run: bool) -> None:
    """Create or change every peer and queue of a YAML file.

    The same as `penstock queue apply`.
    """
    await apply_file(store, output, file, dry_run)


def _description(peer: Peer) -> dict[str, Any]:
    return {"name": peer.name, "owner": peer.owner, "spec": to_peer_document(peer)["spec"]}


@peer.command("list")
@store_command
async def list_(store: Store, output: Output) -> None:
    """List the peers in the store."""
    found = await store.peers.all()
    if output.as_json:
        for one in found:
            output.record(_listed(one))
        return
    output.table(("peer", "protocol", "owner", "addresses"), map(_row, found))


def _listed(peer: Peer | Unreadable) -> dict[str, Any]:
    if isinstance(peer, Unreadable):
        return {"name": peer.name, "owner": peer.owner, "unreadable": peer.problem}
    return _description(peer)


def _row(peer: Peer | Unreadable) -> tuple[str, str, str, str]:
    if isinstance(peer, Unreadable):
        return peer.name, "unreadable", peer.owner, peer.problem
    return peer.name, peer.spec.protocol.value, peer.owner, ", ".join(peer.spec.addresses)


@peer.command()
@click.argument("name")
@store_command
async def show(store: Store, output: Output, name: str) -> None:
    """Show one peer's document."""
    found = await store.peers.find(name)
    if found is None:
        raise not_found(f"there is no peer {name!r}; see `penstock peer list`")
    if output.as_json:
        output.record(_description(found))
        return
    output.document(to_peer_document(found))


@peer.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@store_command
async def delete(store: Store, output: Output, names: tuple[str, ...]) -> None:
    """Delete peers.

    Messages for them stay in their transmission queues.
    """
    for name in names:
        if not await store.peers.delete(name):
            raise not_found(f"there is no peer {name!r}; see `penstock peer list`")
        output.line(f"deleted {name}")
        if output.as_json:
            output.record({"change": "deleted", "name": name})

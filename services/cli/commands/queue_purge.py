"""Implement `penstock queue purge`: delete the ready messages of a queue."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress

import click

from services.cli.documents.resource_owner import NOT_RESTORED, warn_of_resource
from services.cli.framework.command import store_command
from services.cli.terminal.exits import failure_of
from services.cli.terminal.output import Output
from services.cli.terminal.text import count, printable
from services.store import Store, StoreError
from services.store.deadletters import PurgeProgress, QueuePurge, preview_purge

NONE = PurgeProgress(0, 0, is_done=False)


@click.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="do not ask for confirmation")
@click.option("--dry-run", is_flag=True, help="only count the ready messages")
@store_command
async def purge(store: Store, output: Output, name: str, yes: bool, dry_run: bool) -> None:
    """Permanently delete the ready messages of NAME.

    Messages in flight, and messages that arrive after the command has counted, stay. For dead letters use
    `penstock dead purge`. Without --yes, asks to type the queue's name.
    """
    queue, _ = await store.catalogue.find_leniently(name)
    domain = store.get_domain(queue.domain)
    counted = await preview_purge(domain, queue)
    number, held = counted.messages, counted.in_flight
    if dry_run:
        output.line(f"{count(number, 'message')} would be removed; {held:,} in flight would stay")
        if output.as_json:
            output.record({"dry_run": True, "ready": number, "in_flight": held})
        return
    what = f"{count(number, 'message')} of {printable(name)}"
    warn_of_resource(output, "queue", name, queue.owner, NOT_RESTORED)
    if not yes:
        output.confirm_deletion(what, name)
    done = NONE
    run = QueuePurge(domain, queue, f"cli.{secrets.token_hex(8)}", counted.until)
    try:
        with output.progress("removed", number) as advance:
            async for step in run.steps():
                advance(step.messages - done.messages)
                done = step
    except asyncio.CancelledError:
        output.note(f"stopped: {_summary(done, name)}")
        raise
    except StoreError as error:
        failure = failure_of(error)
        raise failure.after_partial_success(
            done.messages, f"{failure} ({_summary(done, name)}: run the same command again to continue)"
        ) from None
    with suppress(StoreError):  # the store's record of the purge also expires by itself
        await run.forget()
    output.line(_summary(done, name))
    if output.as_json:
        output.record({"queue": name, "removed": done.messages, "bytes": done.octets})


def _summary(done: PurgeProgress, name: str) -> str:
    return f"removed {count(done.messages, 'message')} of {printable(name)}"

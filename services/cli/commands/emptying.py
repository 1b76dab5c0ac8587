"""penstock queue purge: the messages that are ready, for good."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress

import click

from services.cli.framework.command import store_command
from services.cli.terminal.exits import failure_of, usage
from services.cli.terminal.output import Output
from services.cli.terminal.text import count, printable
from services.store import Store, StoreError
from services.store.deadletters import PurgeProgress, QueuePurge, preview_purge

NONE = PurgeProgress(0, 0, is_done=False)


@click.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="without asking")
@click.option("--dry-run", is_flag=True, help="only say how many are ready")
@store_command
async def purge(store: Store, output: Output, name: str, yes: bool, dry_run: bool) -> None:
    """Remove the messages of NAME that are ready, for good.

    Those that are there when they are counted. What is given out and not settled stays with whoever has it, and what
    is put in after the count stays, too; dead letters are for `penstock dead purge`. Without --yes the queue's name
    has to be typed in.
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
    if not yes and not output.ask(f"{what} will be gone for good. Type the queue's name:", name):
        raise usage(f"{what} would be gone for good: say --yes, or type the queue's name at a terminal")
    done = NONE
    run = QueuePurge(domain, queue, f"cli.{secrets.token_hex(8)}", counted.until)
    try:
        with output.progress("removed", number) as advance:
            async for step in run.steps():
                advance(step.messages - done.messages)
                done = step
    except asyncio.CancelledError:
        output.note(f"stopped: {_told(done, name)}")
        raise
    except StoreError as error:
        failure = failure_of(error)
        raise failure.half_way(
            done.messages, f"{failure} ({_told(done, name)}: the same command goes on)"
        ) from None
    with suppress(StoreError):  # then the store forgets by itself
        await run.forget()
    output.line(_told(done, name))
    if output.as_json:
        output.record({"queue": name, "removed": done.messages, "bytes": done.octets})


def _told(done: PurgeProgress, name: str) -> str:
    return f"removed {count(done.messages, 'message')} of {printable(name)}"

"""Implement `penstock dead export` and `import`, in the file formats that the protocols define."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from services.cli.documents.selection import filtered
from services.cli.framework.command import store_command
from services.cli.terminal.exits import Exit, Failure, failure_of, not_found, usage
from services.cli.terminal.message import open_client, origin
from services.cli.terminal.output import Output
from services.cli.terminal.streams import open_input, read_chunks, sync, write_all
from services.cli.terminal.text import count
from services.store import (
    INTERNAL_CLIENT,
    DeadLetter,
    DeadLetters,
    Filter,
    Pipe,
    Queue,
    Source,
    Store,
    StoreError,
)
from services.store.deadletters import PAGE, PAGE_OCTETS
from services.store.model import OutcomeUnknown
from services.store.model import records as record

if TYPE_CHECKING:
    from services.kit.dead_letter_formats import DeadLetterFormat, DeadLetterReader, ExportedDeadLetter

LAST_ANSWERS_S = 2.0  # how long Ctrl-C waits for outstanding replies

_OPTIONS, _CHOSEN = "penstock.letter_options", "penstock.letter_formats"  # in the context's `meta`


class DeadLetterFormatCommand(click.Command):
    """A command with a flag for each file format; the formats are loaded only when it is called."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options and a flag for each format."""
        # Loads the protocols, which would slow other commands down.
        from services.kit.dead_letter_formats import formats

        if _OPTIONS not in ctx.meta:
            ctx.meta[_OPTIONS] = [_option(one) for one in formats().values()]
        return [*super().get_params(ctx), *ctx.meta[_OPTIONS]]


def _option(one: DeadLetterFormat) -> click.Option:
    def note(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
        if is_wanted:
            ctx.meta.setdefault(_CHOSEN, []).append(one)

    return click.Option([f"--{one.name}"], is_flag=True, help=one.help, expose_value=False, callback=note)


def _chosen() -> DeadLetterFormat:
    """Return the format that was chosen. Raises Failure unless it is exactly one."""
    meta = click.get_current_context().meta
    chosen: list[DeadLetterFormat] = meta.get(_CHOSEN, [])
    if len(chosen) != 1:
        names = ", ".join(option.opts[0] for option in meta[_OPTIONS])
        raise usage(f"choose a format: one of {names}")
    return chosen[0]


@click.command(cls=DeadLetterFormatCommand)
@click.argument("queue")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@filtered
@store_command
async def export(
    store: Store, output: Output, queue: str, letter_filter: Filter, ids: tuple[str, ...]
) -> None:
    """Write dead letters of QUEUE to standard output, oldest first.

    All of them, or those that match the filters and ids. They stay in the queue. The command ends by naming the last
    id: `penstock dead purge QUEUE --until ID` with the same filters and ids deletes only letters that are in the file.
    """
    one = _chosen()
    if sys.stdout.isatty():
        raise usage("the output is binary: redirect it to a file, as in `> dead.bin`")
    found = await store.catalogue.find(queue)
    letters = DeadLetters(store.get_domain(found.domain), found)
    number, last = 0, ""
    missing = set(ids)
    with output.progress("exported", None) as advance:
        async for identifier in export_letters(letters.matching(letter_filter), one, sys.stdout.fileno()):
            number, last = number + 1, identifier
            missing.discard(identifier)
            advance(1)
    output.note(f"exported {count(number, 'dead letter')} of {found.name}{_behind(last, letter_filter)}")
    if absent := [repr(one) for one in sorted(missing) if await letters.find(one) is None]:
        raise not_found(
            f"queue {queue!r} has no dead letter {', '.join(absent)}; see `penstock dead list {queue}`"
        )


def _behind(last: str, letter_filter: Filter) -> str:
    """Return how far the file goes, and that a purge needs the same filters."""
    if not last:
        return ""
    is_all = letter_filter == Filter(until=letter_filter.until)
    return f"; the last id is {last}" + ("" if is_all else ": purge them with the same filters and ids")


async def export_letters(
    letters: AsyncIterator[DeadLetter], one: DeadLetterFormat, fd: int
) -> AsyncIterator[str]:
    """Write the letters, yield the id of each, and sync the file at the end. Raises OSError."""
    from services.kit.dead_letter_formats import ExportedDeadLetter

    async for letter in letters:
        await write_all(fd, one.encode(ExportedDeadLetter(letter.body, letter.reason)))
        yield letter.id
    sync(fd)


@click.command("import", cls=DeadLetterFormatCommand)
@click.argument("queue")
@click.option("--file", type=click.Path(path_type=Path), help="file to read; - for stdin  [standard input]")
@click.option("--skip", type=click.IntRange(0), default=0, metavar="N", help="skip the first N letters")
@store_command
async def import_(store: Store, output: Output, queue: str, file: Path | None, skip: int) -> None:
    """Import dead letters into QUEUE, with the reasons in the file.

    If it is stopped part way, it ends with 1 and says how many letters were imported; --skip continues after them.
    Also ends with 1 if the queue's limit for dead letters is exceeded: the oldest are dropped.
    """
    one = _chosen()
    if file is None and sys.stdin.isatty():
        raise usage("name a file with --file, or send it to standard input")
    found = await store.catalogue.find(queue)
    await open_client(store, found)
    before = await store.listing.stats(found)
    reader = one.reader(record.MAX_LENGTH, skip)
    run = Import(store.open_domain(found.domain).pipe, found, reader)
    fd = open_input(file)
    try:
        with output.progress("imported", None) as advance:
            async for page in read_pages(reader, fd):
                await run.take(page)
                advance(len(page))
    except asyncio.CancelledError:
        output.note(f"stopped: {run.progress}")
        if output.as_json:
            output.record({"queue": found.name, "imported": run.imported, "perhaps": run.perhaps})
        raise
    except (StoreError, Failure) as error:
        failure = error if isinstance(error, Failure) else failure_of(error)
        raise failure.after_partial_success(
            run.imported + run.perhaps, f"{failure} ({run.progress})"
        ) from None
    finally:
        if fd != sys.stdin.fileno():
            os.close(fd)
    dropped = (await store.listing.stats(found))["dead_overflowed"] - before["dead_overflowed"]
    kept = run.imported - max(0, dropped - before["dead_letters"])  # the letters from before are older
    output.line(f"imported {count(run.imported, 'dead letter')} into those of {found.name}")
    if output.as_json:
        output.record({"queue": found.name, "imported": run.imported, "kept": kept, "dropped": dropped})
    if dropped:
        raise _letters_dropped(found, run.imported, kept, dropped)


def _letters_dropped(queue: Queue, imported: int, kept: int, dropped: int) -> Failure:
    text = (
        f"{queue.name} keeps at most {count(queue.spec.dead_letter.max_length, 'dead letter')} "
        f"(deadLetter.maxLength): the {dropped:,} oldest were dropped; {kept:,} of {imported:,} imported are left"
    )
    return Failure(Exit.REFUSED, "letters_dropped", text)


async def read_pages(reader: DeadLetterReader, fd: int) -> AsyncIterator[list[ExportedDeadLetter]]:
    """Yield the letters in pages. Raises Failure for a damaged file, after all letters before the damage."""
    from services.kit.dead_letter_formats import DamagedDeadLetters

    page: list[ExportedDeadLetter] = []
    octets = 0
    damage: DamagedDeadLetters | None = None
    try:
        async for chunk in read_chunks(fd):
            for letter in reader.receive(chunk):
                page.append(letter)
                octets += len(letter.body)
                if len(page) == PAGE or octets >= PAGE_OCTETS:
                    yield page
                    page, octets = [], 0
        reader.receive_eof()
    except DamagedDeadLetters as error:
        damage = error
    if page:
        yield page
    if damage is not None:
        beyond = "; add one to --skip to pass over the damaged letter" if damage.can_be_skipped else ""
        raise Failure(Exit.USAGE, "bad_file", f"{damage}{beyond}")


class Import:
    """A running import: `imported` letters are stored, and up to `perhaps` of those after them may be."""

    def __init__(self, pipe: Pipe, queue: Queue, reader: DeadLetterReader) -> None:
        self.imported = self.perhaps = 0
        self._pipe = pipe
        self._queue = queue
        self._reader = reader
        self._origin = origin()

    @property
    def progress(self) -> str:
        """Describe what was imported and how to continue."""
        behind = self._reader.skipped + self.imported
        text = f"{count(self.imported, 'dead letter')} imported"
        if not self.perhaps:
            return f"{text}; continue with --skip {behind}"
        return (
            f"{text}, the next {self.perhaps:,} may be; continue with --skip {behind}, which may duplicate those, or "
            f"with --skip {behind + self.perhaps}, which may lose them"
        )

    async def take(self, page: list[ExportedDeadLetter]) -> None:
        """Store a page, and count what is stored also when cancelled. Raises StoreError."""
        answers = self._buried(page)
        try:
            await asyncio.wait(answers)
        except asyncio.CancelledError:
            await asyncio.wait(answers, timeout=LAST_ANSWERS_S)
            raise
        finally:
            self.add([_outcome(answer) for answer in answers])
        for answer in answers:
            if (error := answer.result()) is not None:
                raise error

    def add(self, outcomes: list[StoreError | None]) -> None:
        """Count the outcomes of a page; all after the first failure are uncertain, since --skip takes one number."""
        certain = next((i for i, error in enumerate(outcomes) if error is not None), len(outcomes))
        may_be = [
            i + 1 for i, error in enumerate(outcomes) if error is None or isinstance(error, OutcomeUnknown)
        ]
        self.imported += certain
        self.perhaps = max([certain, *may_be]) - certain

    def _buried(self, letters: Iterable[ExportedDeadLetter]) -> list[asyncio.Future[Any]]:
        source, answers = Source(INTERNAL_CLIENT), []
        for letter in letters:
            answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            encoded = record.encode(letter.body)
            self._pipe.messages.bury(
                source, self._queue, encoded, self._origin, letter.reason, "imported", answer.set_result
            )
            answers.append(answer)
        return answers


def _outcome(answer: asyncio.Future[StoreError | None]) -> StoreError | None:
    return answer.result() if answer.done() else OutcomeUnknown()

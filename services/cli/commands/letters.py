"""penstock dead export, penstock dead import: in the formats that protocols bring along."""

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
from services.cli.terminal.message import asker_of, origin
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

LAST_ANSWERS_S = 2.0  # Ctrl-C waits for those that are on their way

_OPTIONS, _CHOSEN = "penstock.letter_options", "penstock.letter_formats"  # in the context's `meta`


class LetterCommand(click.Command):
    """Has a flag for each format. They are looked for when it is called, not before."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        from services.kit.dead_letter_formats import (
            formats,  # brings protocols along: no other command waits for that
        )

        if _OPTIONS not in ctx.meta:
            ctx.meta[_OPTIONS] = [_option(one) for one in formats().values()]
        return [*super().get_params(ctx), *ctx.meta[_OPTIONS]]


def _option(one: DeadLetterFormat) -> click.Option:
    def note(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
        if is_wanted:
            ctx.meta.setdefault(_CHOSEN, []).append(one)

    return click.Option([f"--{one.name}"], is_flag=True, help=one.help, expose_value=False, callback=note)


def _chosen() -> DeadLetterFormat:
    """Raises Failure unless it is one."""
    meta = click.get_current_context().meta
    chosen: list[DeadLetterFormat] = meta.get(_CHOSEN, [])
    if len(chosen) != 1:
        names = ", ".join(option.opts[0] for option in meta[_OPTIONS])
        raise usage(f"say in which format: one of {names}")
    return chosen[0]


@click.command(cls=LetterCommand)
@click.argument("queue")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@filtered
@store_command
async def export(store: Store, output: Output, queue: str, wanted: Filter, ids: tuple[str, ...]) -> None:
    """Write dead letters of QUEUE to standard output.

    All of them, or those that the filters and ids name, the oldest first. They stay where they are. At its end it
    says the last one's id: `penstock dead purge QUEUE --until ID` removes none that is not in the file, where it is
    given the same filters and ids.
    """
    one = _chosen()
    if sys.stdout.isatty():
        raise usage("this is not for a terminal: send it into a file, as in `> dead.bin`")
    found = await store.catalogue.find(queue)
    letters = DeadLetters(store.get_domain(found.domain), found)
    number, last = 0, ""
    missing = set(ids)
    with output.progress("exported", None) as advance:
        async for identifier in written(letters.matching(wanted), one, sys.stdout.fileno()):
            number, last = number + 1, identifier
            missing.discard(identifier)
            advance(1)
    output.note(f"exported {count(number, 'dead letter')} of {found.name}{_behind(last, wanted)}")
    if absent := [repr(one) for one in sorted(missing) if await letters.find(one) is None]:
        raise not_found(
            f"queue {queue!r} has no dead letter {', '.join(absent)}; see `penstock dead list {queue}`"
        )


def _behind(last: str, wanted: Filter) -> str:
    """How far the file goes. Up to there it leaves out what the filters leave out, which a purge must, too."""
    if not last:
        return ""
    is_all = wanted == Filter(until=wanted.until)
    return f"; the last is {last}" + ("" if is_all else ": purge them with the same filters and ids")


async def written(letters: AsyncIterator[DeadLetter], one: DeadLetterFormat, fd: int) -> AsyncIterator[str]:
    """The id of each that has been handed over; in the end all are on the disk, if that is a file. Raises OSError."""
    from services.kit.dead_letter_formats import ExportedDeadLetter

    async for letter in letters:
        await write_all(fd, one.encode(ExportedDeadLetter(letter.body, letter.reason)))
        yield letter.id
    sync(fd)


@click.command("import", cls=LetterCommand)
@click.argument("queue")
@click.option("--file", type=click.Path(path_type=Path), help="what to read; - for stdin  [standard input]")
@click.option("--skip", type=click.IntRange(0), default=0, metavar="N", help="leave out the first N")
@store_command
async def import_(store: Store, output: Output, queue: str, file: Path | None, skip: int) -> None:
    """Read dead letters into those of QUEUE.

    With the reasons that the file gives. Stopped half way, it ends with 1 and says how many are in; --skip goes on
    behind them. Ends with 1 if the queue keeps fewer dead letters than it has got: the oldest are dropped.
    """
    one = _chosen()
    if file is None and sys.stdin.isatty():
        raise usage("name a file with --file, or give it on standard input")
    found = await store.catalogue.find(queue)
    await asker_of(store, found)
    before = await store.listing.stats(found)
    reader = one.reader(record.MAX_LENGTH, skip)
    incoming = Incoming(store.open_domain(found.domain).pipe, found, reader)
    fd = open_input(file)
    try:
        with output.progress("imported", None) as advance:
            async for page in pages(reader, fd):
                await incoming.take(page)
                advance(len(page))
    except asyncio.CancelledError:
        output.note(f"stopped: {incoming.told}")
        if output.as_json:
            output.record({"queue": found.name, "imported": incoming.imported, "perhaps": incoming.perhaps})
        raise
    except (StoreError, Failure) as error:
        failure = error if isinstance(error, Failure) else failure_of(error)
        raise failure.half_way(incoming.imported + incoming.perhaps, f"{failure} ({incoming.told})") from None
    finally:
        if fd != sys.stdin.fileno():
            os.close(fd)
    dropped = (await store.listing.stats(found))["dead_overflowed"] - before["dead_overflowed"]
    kept = incoming.imported - max(0, dropped - before["dead_letters"])  # those that were there are older
    output.line(f"imported {count(incoming.imported, 'dead letter')} into those of {found.name}")
    if output.as_json:
        told = {"imported": incoming.imported, "kept": kept, "dropped": dropped}
        output.record({"queue": found.name, **told})
    if dropped:
        raise _letters_dropped(found, incoming.imported, kept, dropped)


def _letters_dropped(queue: Queue, imported: int, kept: int, dropped: int) -> Failure:
    text = (
        f"{queue.name} keeps {count(queue.spec.dead_letter.max_length, 'dead letter')} (deadLetter.maxLength): "
        f"the oldest were dropped, {dropped:,} in all; of {imported:,} imported {kept:,} are there"
    )
    return Failure(Exit.REFUSED, "letters_dropped", text)


async def pages(reader: DeadLetterReader, fd: int) -> AsyncIterator[list[ExportedDeadLetter]]:
    """Raises Failure for a damaged file, behind all that is whole in it."""
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
        beyond = ", and one more passes over the damaged one" if damage.can_be_skipped else ""
        raise Failure(Exit.USAGE, "bad_file", f"{damage}{beyond}")


class Incoming:
    """An import under way. `imported` are in; of those behind them up to `perhaps` may be."""

    def __init__(self, pipe: Pipe, queue: Queue, reader: DeadLetterReader) -> None:
        self.imported = self.perhaps = 0
        self._pipe = pipe
        self._queue = queue
        self._reader = reader
        self._origin = origin()

    @property
    def told(self) -> str:
        """For whoever has to go on."""
        behind = self._reader.skipped + self.imported
        text = f"{count(self.imported, 'dead letter')} imported"
        if not self.perhaps:
            return f"{text}; go on behind them with --skip {behind}"
        return (
            f"{text}, and of the next {self.perhaps:,} nobody knows; go on with --skip {behind}, and these may come "
            f"twice, or with --skip {behind + self.perhaps}, and they may be missing"
        )

    async def take(self, page: list[ExportedDeadLetter]) -> None:
        """Raises StoreError: of that page perhaps some. Whoever is cancelled still hears the answers, if they come."""
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
        """What follows the first that is not in is told as one piece: --skip knows no other."""
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

"""Test `penstock dead export` and `import`: GARBAGE_MSGs (rqp_cast.md 2.1, docs/cli.md)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.cli.commands.dead_letter_files import Import, export_letters, read_pages
from services.kit.dead_letter_formats import formats
from services.store import Store, StoreError, StoreUnavailable
from services.store.deadletters.dead_letters import PAGE, DeadLetters
from services.store.model.errors import OutcomeUnknown
from tests.cli.commands.test_dead import bury
from tests.cli.shell import PATIENCE_S, Shell
from tests.servers import eventually

GARBAGE = "--garbage-msg"
INJURED, PARTIALLY_RECEIVED, ZOMBIE = range(3)


def garbage(body: bytes, reason: int) -> bytes:
    """Encode a letter as in the specification: message_size, data, reason."""
    return struct.pack(">I", len(body)) + body + struct.pack(">I", reason)


def letters(shell: Shell, queue: str) -> list[tuple[str, str]]:
    found = shell.run("dead", "list", queue, "-n", "0", "--json").objects
    return [(letter["reason"], letter["body"]) for letter in found]


def test_export_writes_garbage_msgs(shell: Shell, queue: str) -> None:
    *_, last = bury(shell, queue, ("injured", b"a"), ("partially_received", b"\x00b"), ("zombie", b""))
    done = shell.run("dead", "export", queue, GARBAGE)
    assert done.out == garbage(b"a", INJURED) + garbage(b"\x00b", PARTIALLY_RECEIVED) + garbage(b"", ZOMBIE)
    assert done.err == f"exported 3 dead letters of {queue}; the last id is {last}\n"
    assert shell.stats(queue)["dead_letters"] == 3  # they stay


class Disk:
    """A record of the file's size at each sync."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.synced: list[int] = []
        monkeypatch.setattr(os, "fsync", lambda fd: self.synced.append(os.fstat(fd).st_size))


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(tmp_path / "dead.bin", monkeypatch)


def test_export_syncs_the_file_once_at_the_end(shell: Shell, queue: str, disk: Disk) -> None:
    """Check that an export syncs its file once at the end, and not after each letter."""
    bury(shell, queue, *(("zombie", b"x") for _ in range(PAGE + 1)))

    async def export(store: Store) -> None:
        found = await store.catalogue.find(queue)
        letters = DeadLetters(store.get_domain(found.domain), found)
        with disk.path.open("wb") as file:
            ids = [
                one
                async for one in export_letters(letters.matching(), formats()["garbage-msg"], file.fileno())
            ]
        assert len(ids) == PAGE + 1

    shell.with_store(export)
    assert disk.synced == [(PAGE + 1) * len(garbage(b"x", ZOMBIE))]


def test_other_reasons_become_the_nearest_of_the_format(shell: Shell, queue: str) -> None:
    reasons = {
        "unencodable": INJURED,
        "too_large_for_peers": INJURED,
        "too_large_for_queue": INJURED,
        "expired": ZOMBIE,
        "max_deliveries": ZOMBIE,
        "rejected_full": ZOMBIE,
        "no_receiver": ZOMBIE,
        "unconfirmed": ZOMBIE,
        "whatever_comes": ZOMBIE,
    }
    bury(shell, queue, *((reason, b"x") for reason in reasons))
    assert shell.run("dead", "export", queue, GARBAGE).out == b"".join(
        garbage(b"x", number) for number in reasons.values()
    )


def test_filters_select_letters(shell: Shell, queue: str) -> None:
    first, *_ = bury(shell, queue, ("expired", b"a 1"), ("expired", b"b 2"), ("injured", b"b 3"))
    for options, bodies in (
        (("--reason", "injured"), [b"b 3"]),
        (("--match", "^b"), [b"b 2", b"b 3"]),
        ((first,), [b"a 1"]),
    ):
        exported = shell.run("dead", "export", queue, GARBAGE, *options).out
        assert [body for body in (b"a 1", b"b 2", b"b 3") if body in exported] == bodies


def test_purge_after_filtered_export_needs_the_same_filters(shell: Shell, queue: str) -> None:
    """Check that a purge after a filtered export needs the filters, as --until alone would delete other letters."""
    _, last, _ = bury(shell, queue, ("injured", b"1"), ("expired", b"2"), ("expired", b"3"))
    filters = ("--reason", "expired", "--until", last)
    done = shell.run("dead", "export", queue, GARBAGE, *filters)
    assert done.out == garbage(b"2", ZOMBIE)
    assert done.err == (
        f"exported 1 dead letter of {queue}; the last id is {last}: purge them with the same filters and ids\n"
    )
    shell.run("dead", "purge", queue, *filters, "--yes")
    assert letters(shell, queue) == [("injured", "1"), ("expired", "3")]
    whole = shell.run("dead", "export", queue, GARBAGE, "--until", last)
    assert whole.err.startswith(f"exported 1 dead letter of {queue}; the last id is ")
    assert "filters" not in whole.err
    assert (
        shell.run("dead", "export", queue, GARBAGE, "--match", "^4").err
        == f"exported 0 dead letters of {queue}\n"
    )


def test_import_restores_exported_letters(shell: Shell, queue: str, new_queue: Callable[..., str]) -> None:
    """Check an import of thousands of letters from a file and from standard input, in order."""
    kinds = ("injured", "partially_received", "zombie")
    wanted = [(kinds[number % 3], f"{number} " + "x" * (number % 300)) for number in range(1000)]
    bury(shell, queue, *((reason, body.encode()) for reason, body in wanted))
    exported = shell.run("dead", "export", queue, GARBAGE).out
    target = new_queue()
    document = shell.run("dead", "import", target, GARBAGE, "--json", stdin=exported).object
    assert document == {"queue": target, "imported": 1000, "kept": 1000, "dropped": 0}
    assert letters(shell, target) == wanted
    shell.write("dead.bin", "").write_bytes(exported)
    assert shell.run("dead", "import", target, GARBAGE, "--file", "dead.bin", "--skip", "998").text == (
        f"imported 2 dead letters into those of {target}\n"
    )
    assert letters(shell, target) == [*wanted, *wanted[-2:]]
    one = shell.run("dead", "list", target, "--json", "-n", "1").object
    assert one["origin"].startswith("cli ")
    assert one["error"] == "imported"


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        (b"\0", "truncated at byte 18: the file ends 1 bytes later"),
        (garbage(b"cut", ZOMBIE)[:-1], "truncated at byte 18: the file ends 10 bytes later"),
        (garbage(b"odd", 3) + garbage(b"good", ZOMBIE), "unknown_reason at byte 18: reason 3"),
        (
            b"\xff\xff\xff\xff",
            "message_too_large at byte 18: 4,294,967,295 bytes, and 16,777,215 are allowed",
        ),
    ],
)
def test_damaged_file_reports_position(shell: Shell, queue: str, rest: bytes, text: str) -> None:
    """Check that letters before the damage are imported once, and --skip continues after them."""
    whole = garbage(b"1", INJURED) + garbage(b"2", ZOMBIE)
    error = shell.fails("dead", "import", queue, GARBAGE, code=1, stdin=whole + rest)
    beyond = "; add one to --skip to pass over the damaged letter" if "unknown_reason" in text else ""
    assert error == f"bad_file: {text}{beyond} (2 dead letters imported; continue with --skip 2)"
    assert letters(shell, queue) == [("injured", "1"), ("zombie", "2")]
    again = shell.run("dead", "import", queue, GARBAGE, "--skip", "2", stdin=whole + garbage(b"3", ZOMBIE))
    assert again.text == f"imported 1 dead letter into those of {queue}\n"
    assert [body for _, body in letters(shell, queue)] == ["1", "2", "3"]


def test_skip_passes_over_unknown_reason(shell: Shell, queue: str) -> None:
    """Check that --skip passes over a letter with an unknown reason, as its end is known."""
    file = garbage(b"1", ZOMBIE) + garbage(b"odd", 3) + garbage(b"2", INJURED) + garbage(b"odder", 99)
    shell.fails("dead", "import", queue, GARBAGE, code=1, stdin=file)
    error = shell.fails("dead", "import", queue, GARBAGE, "--skip", "2", code=1, stdin=file)
    assert "unknown_reason at byte 29: reason 99" in error
    assert error.endswith("(1 dead letter imported; continue with --skip 3)")
    again = shell.run("dead", "import", queue, GARBAGE, "--skip", "4", stdin=file)
    assert again.text == f"imported 0 dead letters into those of {queue}\n"
    assert letters(shell, queue) == [("zombie", "1"), ("injured", "2")]


def test_skip_beyond_the_end_of_the_file(shell: Shell, queue: str) -> None:
    file = garbage(b"1", ZOMBIE) + b"\0"
    error = shell.fails("dead", "import", queue, GARBAGE, "--skip", "9", code=2, stdin=file)
    assert error.endswith("(0 dead letters imported; continue with --skip 1)")


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_import_reports_its_progress(
    shell: Shell, queue: str, how: signal.Signals, code: int
) -> None:
    """Check that letters that were read but do not fill a page are not imported when an import is interrupted."""
    wanted = [f"{number}" for number in range(PAGE + 7)]
    file = b"".join(garbage(body.encode(), ZOMBIE) for body in wanted)
    importing = shell.spawn(
        *("dead", "import", queue, GARBAGE),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert importing.stdin is not None
    importing.stdin.write(file)
    importing.stdin.flush()
    eventually(lambda: shell.stats(queue)["dead_letters"] == PAGE)
    importing.send_signal(how)
    assert importing.wait(PATIENCE_S) == code  # the file ends only then
    out, error = importing.communicate()
    text = f"stopped: {PAGE} dead letters imported; continue with --skip {PAGE}"
    assert (out, error.decode().rstrip()) == (b"", text)
    shell.run("dead", "import", queue, GARBAGE, "--skip", str(PAGE), stdin=file)
    assert [body for _, body in letters(shell, queue)] == wanted


@pytest.mark.parametrize(
    ("outcomes", "imported", "perhaps"),
    [
        ([None] * 3, 3, 0),
        ([None, StoreUnavailable(), StoreUnavailable()], 1, 0),
        ([None, OutcomeUnknown(), OutcomeUnknown()], 1, 2),
        ([None, OutcomeUnknown(), StoreUnavailable()], 1, 1),
        ([StoreUnavailable(), None, StoreUnavailable()], 0, 2),
    ],
)
def test_outcome_of_a_failed_page(outcomes: list[StoreError | None], imported: int, perhaps: int) -> None:
    """Check which letters of a failed page may be stored: those after the first failure, as --skip takes one number."""
    incoming = Import(Any, Any, formats()["garbage-msg"].reader(10, 0))  # type: ignore[arg-type]
    incoming.add(outcomes)
    assert (incoming.imported, incoming.perhaps) == (imported, perhaps)


@pytest.mark.parametrize(("there", "imported", "kept", "dropped"), [(0, 3, 3, 0), (2, 2, 2, 1), (2, 5, 3, 4)])
def test_import_beyond_the_limit_drops_the_oldest(
    shell: Shell, new_queue: Callable[..., str], there: int, imported: int, kept: int, dropped: int
) -> None:
    """Check that an import beyond the limit drops the oldest letters, reports it and fails."""
    target = new_queue("--dead-letter-max-length", "3")
    if there:
        bury(shell, target, *(("zombie", b"old") for _ in range(there)))
    wanted = [f"{number}" for number in range(imported)]
    file = b"".join(garbage(body.encode(), ZOMBIE) for body in wanted)
    done = shell.run("dead", "import", target, GARBAGE, "--json", stdin=file, code=1 if dropped else 0)
    assert done.object == {"queue": target, "imported": imported, "kept": kept, "dropped": dropped}
    assert [body for _, body in letters(shell, target)][-kept:] == wanted[-kept:]
    if dropped:
        error = json.loads(done.err)
        assert error["error"] == "letters_dropped"
        assert error["message"] == (
            f"{target} keeps at most 3 dead letters (deadLetter.maxLength): the {dropped} oldest were dropped; "
            f"{kept} of {imported} imported are left"
        )


def test_expired_letters_are_not_counted_as_dropped(shell: Shell, new_queue: Callable[..., str]) -> None:
    """Check that expired letters do not count as dropped, although the store counts both together."""
    queue = new_queue("--dead-letter-retention", "1ms")
    importing = shell.spawn(
        *("dead", "import", queue, GARBAGE, "--json"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert importing.stdin is not None
    importing.stdin.write(garbage(b"x", ZOMBIE) * PAGE)
    importing.stdin.flush()
    eventually(lambda: shell.stats(queue)["dead"] == PAGE)

    async def tidy(store: Store) -> None:
        await store.get_domain("main").tidy(await store.catalogue.find(queue))

    eventually(lambda: shell.with_store(tidy) or shell.stats(queue)["dead_trimmed"] == PAGE)
    out, _ = importing.communicate(timeout=PATIENCE_S)
    assert importing.returncode == 0
    assert json.loads(out)["dropped"] == 0


def test_export_names_unknown_ids(shell: Shell, queue: str) -> None:
    """Check that an export writes the known ids and reports unknown ones; ids excluded by a filter are no error."""
    first, second = bury(shell, queue, ("expired", b"1"), ("injured", b"2"))
    done = shell.run("dead", "export", queue, GARBAGE, second, "12-3", "no id", first, code=4)
    assert done.out == garbage(b"1", ZOMBIE) + garbage(b"2", INJURED)
    assert done.err.splitlines() == [
        f"exported 2 dead letters of {queue}; the last id is {second}: purge them with the same filters and ids",
        f"penstock: not_found: queue '{queue}' has no dead letter '12-3', 'no id'; see `penstock dead list {queue}`",
    ]
    assert shell.run("dead", "export", queue, GARBAGE, first, second, "--reason", "injured").code == 0


def test_an_empty_file_has_no_letters(shell: Shell, queue: str) -> None:
    assert (
        shell.run("dead", "import", queue, GARBAGE).text == f"imported 0 dead letters into those of {queue}\n"
    )


def test_largest_body_can_be_exported_and_imported(shell: Shell, queue: str) -> None:
    body = b"x" * ((1 << 24) - 1)
    assert shell.run("dead", "import", queue, GARBAGE, stdin=garbage(body, ZOMBIE)).code == 0
    assert shell.run("dead", "export", queue, GARBAGE).out == garbage(body, ZOMBIE)


def test_import_page_is_bounded_by_bytes(tmp_path: Path) -> None:
    """Check that at most about 4 MiB, or one letter, wait for the store's reply."""
    path = tmp_path / "dead.bin"
    sizes = [3 << 20, 3 << 20, 9 << 20, *[10] * (PAGE + 1)]
    path.write_bytes(b"".join(garbage(bytes(size), ZOMBIE) for size in sizes))

    async def paged() -> list[list[int]]:
        fd = os.open(path, os.O_RDONLY)
        try:
            found = read_pages(formats()["garbage-msg"].reader(1 << 24, 0), fd)
            return [[len(letter.body) for letter in page] async for page in found]
        finally:
            os.close(fd)

    assert asyncio.run(paged()) == [sizes[:2], sizes[2:3], [10] * PAGE, [10]]


def test_wrong_use(shell: Shell, queue: str, tmp_path: Path) -> None:
    for command in ("export", "import"):
        assert "choose a format: one of --garbage-msg" in shell.fails("dead", command, queue, code=2)
        assert shell.fails("dead", command, "missing", GARBAGE, code=4).startswith("queue_unknown: ")
    missing = ("dead", "import", queue, GARBAGE, "--file", str(tmp_path / "none"))
    assert "cannot be read: No such file" in shell.fails(*missing, code=2)
    folder = ("dead", "import", queue, GARBAGE, "--file", "/")
    assert shell.fails(*folder, code=2) == "usage: / cannot be read: Is a directory"
    with shell.terminal("dead", "export", queue, GARBAGE) as terminal:
        assert terminal.end() == 2
        eventually(lambda: terminal.sees("the output is binary"))
    with shell.terminal("dead", "import", queue, GARBAGE) as terminal:
        assert terminal.end() == 2
        assert terminal.sees("name a file with --file")

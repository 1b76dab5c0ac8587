"""penstock queue: create, list, show, delete, apply."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from services.store import QueueSpec
from tests.cli.shell import Shell
from tests.servers import eventually

TWO = """
apiVersion: penstock.dev/v1alpha1
kind: Queue
metadata: {name: %(prefix)s-a}
spec: {maxLength: 5, messageTTL: 1h}
---
metadata: {name: %(prefix)s-b}
"""


def test_a_queue_gets_what_the_options_say(shell: Shell) -> None:
    options = ["--max-length", "7", "--message-ttl", "90s", "--overflow", "dead_letter_oldest", "--paused"]
    options += ["--dead-letter-retention", "2d", "--delivery", "at-most-once"]
    shell.run("queue", "create", "fine", *options)
    told = shell.run("queue", "show", "fine", "--json").object
    assert told["spec"] == {
        "maxLength": 7,
        "messageTTL": "90s",
        "overflow": "dead_letter_oldest",
        "paused": True,
        "deadLetter": {"retention": "2d"},
        "ackLevel": "fsync",
        "delivery": "at-most-once",
    }
    assert (told["owner"], told["domain"], told["ackLevel"]) == ("cli", "main", "fsync")


def test_show_prints_a_document_that_apply_takes(shell: Shell, new_queue: Callable[..., str]) -> None:
    name = new_queue("--max-bytes", "1000")
    shown = shell.run("queue", "show", name).text
    document, _, counters = shown.partition("\n\n")
    assert yaml.safe_load(document)["spec"] == {"maxBytes": 1000, "ackLevel": "fsync"}
    assert "in flight" in counters
    done = shell.run("queue", "apply", "-f", "-", "--json", stdin=document.encode())
    assert done.object == {
        "change": "changed",
        "kind": "Queue",
        "name": name,
        "dry_run": False,
    }  # now it belongs to the file


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["x", "--max-length", "many"], 2, "bad_document: maxLength: must be a valid integer"),
        (
            ["x", "--ack-level", "replicated:2"],
            1,
            "ack_level_refused: ackLevel replicated:2 needs 2 replicas",
        ),
        (["x", "--domain", "a b"], 2, "domain: must match pattern"),
        (["y" * 256], 2, "bad_name: a queue's name has 1 to 255 octets, this one has 256"),
        (["a\nb"], 2, "bad_name: a queue's name has no control characters"),
    ],
)
def test_what_cannot_be_is_refused(shell: Shell, options: list[str], code: int, says: str) -> None:
    assert says in shell.fails("queue", "create", *options, code=code)
    shell.fails("queue", "show", "x", code=4)


def test_list_shows_what_matches(shell: Shell) -> None:
    for name in ("list-a", "list-b", "other"):
        shell.run("queue", "create", name)
    shell.run("put", "list-a", "x")
    listed = shell.run("queue", "list", "list-*", "--json").objects
    assert [one["name"] for one in listed] == ["list-a", "list-b"]
    assert [one["stats"]["ready"] for one in listed] == [1, 0]
    table = shell.run("queue", "list", "list-*").text.splitlines()
    assert table[0].split()[:4] == ["queue", "ready", "in", "flight"]
    assert table[2].split()[:2] == ["list-a", "1"]


def test_an_empty_queue_may_go_and_a_full_one_must_be_meant(
    shell: Shell, new_queue: Callable[..., str]
) -> None:
    empty, full = new_queue(), new_queue()
    shell.run("put", full, "precious")
    shell.run("queue", "delete", empty)
    error = shell.fails("queue", "delete", full, code=1)
    assert error.startswith("queue_not_empty: ")
    assert "--yes" in error
    done = shell.run("queue", "delete", full, "--yes", "--json")
    assert done.object == {"change": "deleted", "name": full, "messages": 1}
    shell.fails("queue", "delete", full, code=4)


@pytest.mark.parametrize(("typed", "code"), [("the name", 0), ("no", 1)])
def test_at_a_terminal_the_name_is_typed_in(
    shell: Shell, new_queue: Callable[..., str], typed: str, code: int
) -> None:
    name = new_queue()
    shell.run("put", name, "x")
    with shell.terminal("queue", "delete", name) as terminal:
        eventually(lambda: terminal.sees("type the queue's name:"))
        terminal.type((name if code == 0 else typed) + "\n")
        assert terminal.end() == code


# queues.yaml -------------------------------------------------------------------------------------------------------


def changes(shell: Shell, *options: str) -> list[str]:
    return [one["change"] for one in shell.run("queue", "apply", "--json", *options).objects]


def test_documents_are_applied_and_applied_again(shell: Shell) -> None:
    shell.write("queues.yaml", TWO % {"prefix": "apply"})
    assert changes(shell, "--dry-run") == ["created", "created"]
    shell.fails("queue", "show", "apply-a", code=4)
    assert changes(shell) == ["created", "created"]
    assert changes(shell) == ["unchanged", "unchanged"]
    shell.run("put", "apply-a", "kept")
    shell.write("queues.yaml", (TWO % {"prefix": "apply"}).replace("maxLength: 5", "maxLength: 6"))
    assert changes(shell) == ["changed", "unchanged"]
    told = shell.run("queue", "show", "apply-a", "--json").object
    assert (told["spec"]["maxLength"], told["stats"]["ready"]) == (6, 1)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (
            "metadata: {name: z}\nspec: {maxLenght: 3}",
            "document 2 (z): spec.maxLenght: unknown; allowed: domain,",
        ),
        ("metadata: {name: z}\nspec: {paused: 1, paused: 0}", "the key 'paused' is repeated"),
        ("metadata: {name: good}", "document 2 (good): the queue 'good' is declared already in"),
        ("kind: Topic\nmetadata: {name: z}", "document 2 (z): kind: must be 'Queue' or 'Peer', not 'Topic'"),
        ("kind: [Peer]", "document 2: kind: must be 'Queue' or 'Peer', not ['Peer']"),
        ("spec: {}", "document 2: metadata: missing"),
        ("- a list", "document 2: must be a mapping of fields"),
        ("metadata: {name: {{ .Values.name }}}", "bad.yaml: line 3, column 19: a key must be plain text"),
        ("kind: List", "document 2: kind: must be 'Queue' or 'Peer', not 'List'"),
    ],
)
def test_one_bad_document_stops_all(shell: Shell, document: str, says: str) -> None:
    path = shell.write("bad.yaml", f"metadata: {{name: good}}\n---\n{document}\n")
    assert says in shell.fails("queue", "apply", "-f", str(path), code=2)
    shell.fails("queue", "show", "good", code=4)


def test_every_fault_has_a_line(shell: Shell) -> None:
    path = shell.write(
        "bad.yaml", "metadata: {name: a}\nspec: {x: 1, maxLength: -1}\n---\nmetadata: {name: ''}\n"
    )
    lines = shell.run("queue", "apply", "-f", str(path), code=2).err.splitlines()
    assert len(lines) == 3
    assert ["document 1" in line for line in lines] == [True, True, False]


def test_what_the_store_cannot_keep_stops_all_too(shell: Shell) -> None:
    text = "metadata: {name: good}\n---\nmetadata: {name: z}\nspec: {ackLevel: 'replicated:1'}\n"
    error = shell.fails("queue", "apply", "-f", "-", code=1, stdin=text.encode())
    assert error.startswith("document_refused: -: document 2 (z): spec.ackLevel: ")
    shell.fails("queue", "show", "good", code=4)


def test_a_queue_cannot_move_to_another_domain(shell: Shell, queue: str) -> None:
    text = f"metadata: {{name: {queue}}}\nspec: {{domain: elsewhere}}\n"
    error = shell.fails("queue", "apply", "-f", "-", code=1, stdin=text.encode())
    assert "spec.domain: the queue is in 'main' and cannot move" in error


def test_a_file_must_be_there(shell: Shell) -> None:
    assert "No such file" in shell.fails("queue", "apply", "-f", "missing.yaml", code=2)


@pytest.mark.parametrize("text", [b"", b"# nothing yet\n", b"---\n---\n"])
def test_a_file_without_documents_is_a_mistake(shell: Shell, text: bytes) -> None:
    """As with `kubectl apply`: more likely the wrong file than a wish for nothing."""
    for options in ([], ["--dry-run"]):
        error = shell.fails("queue", "apply", "-f", "-", *options, code=2, stdin=text)
        assert error == "no_documents: -: there is no Queue or Peer document in it: nothing was applied"


def test_a_queue_that_nobody_sees_to_any_more_is_released(shell: Shell, queue: str) -> None:
    """An operator gives it to the next Queue of its name."""
    owner = "kubernetes shop/orders"
    shell.with_store(
        lambda store: store.catalogue.declare(queue, QueueSpec(max_length=7), owner, replace=True)
    )
    assert shell.run("queue", "release", queue).text == f"released {queue}, which was of {owner}\n"
    told = shell.run("queue", "show", queue, "--json").object
    assert (told["owner"], told["spec"]) == (f"released {owner}", {"maxLength": 7, "ackLevel": "fsync"})
    error = shell.fails("queue", "release", queue, code=1)
    assert error.startswith(f"not_owned: queue {queue!r} is of 'released {owner}' and of no resource")


def test_what_a_file_declared_is_not_released(shell: Shell, queue: str) -> None:
    error = shell.fails("queue", "release", queue, code=1)
    assert error.startswith(f"not_owned: queue {queue!r} is of 'test' and of no resource")
    assert shell.run("queue", "show", queue, "--json").object["owner"] == "test"

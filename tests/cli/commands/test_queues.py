"""Test `penstock queue`: create, list, show, delete, apply."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from services.store import QueueSpec
from services.store.model import PeerSpec
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


def test_options_set_the_spec(shell: Shell) -> None:
    options = ["--max-length", "7", "--message-ttl", "90s", "--overflow", "dead_letter_oldest", "--paused"]
    options += ["--dead-letter-retention", "2d", "--delivery", "at-most-once"]
    shell.run("queue", "create", "fine", *options)
    document = shell.run("queue", "show", "fine", "--json").object
    assert document["spec"] == {
        "maxLength": 7,
        "messageTTL": "90s",
        "overflow": "dead_letter_oldest",
        "paused": True,
        "deadLetter": {"retention": "2d"},
        "ackLevel": "fsync",
        "delivery": "at-most-once",
    }
    assert (document["owner"], document["domain"], document["ackLevel"]) == ("cli", "main", "fsync")


def test_show_output_can_be_applied(shell: Shell, new_queue: Callable[..., str]) -> None:
    name = new_queue("--max-bytes", "1000")
    shown = shell.run("queue", "show", name).text
    document, _, counters = shown.partition("\n\n")
    assert yaml.safe_load(document)["spec"] == {"maxBytes": 1000, "ackLevel": "fsync"}
    assert "in flight" in counters
    done = shell.run("queue", "apply", "-f", "-", "--json", stdin=document.encode())
    # now the file owns it
    assert done.object == {"change": "changed", "kind": "Queue", "name": name, "dry_run": False}


@pytest.mark.parametrize(
    ("options", "code", "text"),
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
def test_invalid_queues_are_refused(shell: Shell, options: list[str], code: int, text: str) -> None:
    assert text in shell.fails("queue", "create", *options, code=code)
    shell.fails("queue", "show", "x", code=4)


def test_list_shows_matching_queues(shell: Shell) -> None:
    for name in ("list-a", "list-b", "other"):
        shell.run("queue", "create", name)
    shell.run("put", "list-a", "x")
    listed = shell.run("queue", "list", "list-*", "--json").objects
    assert [one["name"] for one in listed] == ["list-a", "list-b"]
    assert [one["stats"]["ready"] for one in listed] == [1, 0]
    table = shell.run("queue", "list", "list-*").text.splitlines()
    assert table[0].split()[:4] == ["queue", "ready", "in", "flight"]
    assert table[2].split()[:2] == ["list-a", "1"]


def test_delete_of_a_non_empty_queue_needs_confirmation(shell: Shell, new_queue: Callable[..., str]) -> None:
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
def test_terminal_confirmation_needs_the_name(
    shell: Shell, new_queue: Callable[..., str], typed: str, code: int
) -> None:
    name = new_queue()
    shell.run("put", name, "x")
    with shell.terminal("queue", "delete", name) as terminal:
        eventually(lambda: terminal.sees("Type the queue's name to delete them too:"))
        terminal.type((name if code == 0 else typed) + "\n")
        assert terminal.end() == code


# queues.yaml -------------------------------------------------------------------------------------------------------


def changes(shell: Shell, *options: str) -> list[str]:
    return [one["change"] for one in shell.run("queue", "apply", "--json", *options).objects]


def test_apply_is_idempotent(shell: Shell) -> None:
    shell.write("queues.yaml", TWO % {"prefix": "apply"})
    assert changes(shell, "--dry-run") == ["created", "created"]
    shell.fails("queue", "show", "apply-a", code=4)
    assert changes(shell) == ["created", "created"]
    assert changes(shell) == ["unchanged", "unchanged"]
    shell.run("put", "apply-a", "kept")
    shell.write("queues.yaml", (TWO % {"prefix": "apply"}).replace("maxLength: 5", "maxLength: 6"))
    assert changes(shell) == ["changed", "unchanged"]
    document = shell.run("queue", "show", "apply-a", "--json").object
    assert (document["spec"]["maxLength"], document["stats"]["ready"]) == (6, 1)


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            "metadata: {name: z}\nspec: {maxLenght: 3}",
            "document 2 (z): spec.maxLenght: unknown; allowed: domain,",
        ),
        ("metadata: {name: z}\nspec: {paused: 1, paused: 0}", "the key 'paused' is repeated"),
        ("metadata: {name: good}", "document 2 (good): the queue 'good' is already declared in"),
        ("kind: Topic\nmetadata: {name: z}", "document 2 (z): kind: must be 'Queue' or 'Peer', not 'Topic'"),
        ("kind: [Peer]", "document 2: kind: must be 'Queue' or 'Peer', not ['Peer']"),
        ("spec: {}", "document 2: metadata: missing"),
        ("- a list", "document 2: must be a mapping of fields"),
        ("metadata: {name: {{ .Values.name }}}", "bad.yaml: line 3, column 19: a key must be plain text"),
        ("kind: List", "document 2: kind: must be 'Queue' or 'Peer', not 'List'"),
    ],
)
def test_one_invalid_document_prevents_all_changes(shell: Shell, document: str, text: str) -> None:
    path = shell.write("bad.yaml", f"metadata: {{name: good}}\n---\n{document}\n")
    assert text in shell.fails("queue", "apply", "-f", str(path), code=2)
    shell.fails("queue", "show", "good", code=4)


def test_each_fault_has_a_line(shell: Shell) -> None:
    path = shell.write(
        "bad.yaml", "metadata: {name: a}\nspec: {x: 1, maxLength: -1}\n---\nmetadata: {name: ''}\n"
    )
    lines = shell.run("queue", "apply", "-f", str(path), code=2).err.splitlines()
    assert len(lines) == 3
    assert ["document 1" in line for line in lines] == [True, True, False]


def test_unsupported_ack_level_prevents_all_changes(shell: Shell) -> None:
    text = "metadata: {name: good}\n---\nmetadata: {name: z}\nspec: {ackLevel: 'replicated:1'}\n"
    error = shell.fails("queue", "apply", "-f", "-", code=1, stdin=text.encode())
    assert error.startswith("document_refused: -: document 2 (z): spec.ackLevel: ")
    shell.fails("queue", "show", "good", code=4)


def test_a_queue_cannot_move_to_another_domain(shell: Shell, queue: str) -> None:
    text = f"metadata: {{name: {queue}}}\nspec: {{domain: elsewhere}}\n"
    error = shell.fails("queue", "apply", "-f", "-", code=1, stdin=text.encode())
    assert "spec.domain: the queue is in 'main' and cannot move" in error


def test_missing_file(shell: Shell) -> None:
    assert "No such file" in shell.fails("queue", "apply", "-f", "missing.yaml", code=2)


@pytest.mark.parametrize("text", [b"", b"# nothing yet\n", b"---\n---\n"])
def test_file_without_documents_is_an_error(shell: Shell, text: bytes) -> None:
    """Check that a file without documents is an error, as with `kubectl apply`: it is probably the wrong file."""
    for options in ([], ["--dry-run"]):
        error = shell.fails("queue", "apply", "-f", "-", *options, code=2, stdin=text)
        assert error == "no_documents: -: it has no Queue or Peer document; nothing was applied"


def test_release_of_an_orphaned_queue(shell: Shell, queue: str) -> None:
    """Check that the release of an orphaned queue lets the next Queue of its name adopt it."""
    owner = "kubernetes shop/orders"
    shell.with_store(
        lambda store: store.catalogue.declare(queue, QueueSpec(max_length=7), owner, replace=True)
    )
    assert shell.run("queue", "release", queue).text == f"released {queue}, which belonged to {owner}\n"
    document = shell.run("queue", "show", queue, "--json").object
    assert (document["owner"], document["spec"]) == (
        f"released {owner}",
        {"maxLength": 7, "ackLevel": "fsync"},
    )
    error = shell.fails("queue", "release", queue, code=1)
    assert error.startswith(
        f"not_owned: queue {queue!r} belongs to 'released {owner}' and to no Kubernetes resource"
    )


CHANGED_BY_HAND = [
    (
        ["delete", "QUEUE", "--yes"],
        "its operator creates the queue again within a minute, without its messages",
    ),
    (["purge", "QUEUE", "--yes"], "its operator does not restore purged messages"),
    (["apply", "-f", "-"], "its operator undoes this change within a minute; change the resource instead"),
    (["apply", "-f", "-", "--dry-run"], "its operator undoes this change within a minute"),
]


@pytest.mark.parametrize(("words", "consequence"), CHANGED_BY_HAND, ids=lambda words: "-".join(words[::2]))
@pytest.mark.parametrize("owner", ["kubernetes shop/orders", "released kubernetes shop/orders", "file"])
def test_changes_of_a_resource_s_queue_are_warned_of(
    shell: Shell, queue: str, words: list[str], consequence: str, owner: str
) -> None:
    shell.with_store(lambda store: store.catalogue.declare(queue, QueueSpec(), owner, replace=True))
    document = f"metadata: {{name: {queue}}}\nspec: {{paused: true}}\n"
    options = [queue if word == "QUEUE" else word for word in words]
    done = shell.run("queue", *options, stdin=document.encode())
    if owner.startswith("kubernetes "):
        warning = f"warning: queue {queue} belongs to the Kubernetes resource shop/orders: {consequence}"
        assert warning in " ".join(done.err.split())
    else:
        assert "warning" not in done.err


def test_apply_to_a_resource_s_peer_is_warned_of(shell: Shell) -> None:
    spec = PeerSpec.model_validate({"protocol": "text", "addresses": ["10.0.0.7"]})
    shell.with_store(lambda store: store.peers.apply("warned", spec, "kubernetes shop/warned"))
    document = "kind: Peer\nmetadata: {name: warned}\nspec: {protocol: text, addresses: [10.0.0.8]}\n"
    done = shell.run("queue", "apply", "-f", "-", stdin=document.encode())
    assert (
        "warning: peer warned belongs to the Kubernetes resource shop/warned: its operator undoes" in done.err
    )


def test_release_of_a_file_queue_is_refused(shell: Shell, queue: str) -> None:
    error = shell.fails("queue", "release", queue, code=1)
    assert error.startswith(f"not_owned: queue {queue!r} belongs to 'test' and to no Kubernetes resource")
    assert shell.run("queue", "show", queue, "--json").object["owner"] == "test"

"""Test invalid documents and settings files, and output of Kubernetes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from services.cli.documents.documents import read_documents
from services.cli.terminal.exits import Failure
from services.kit.config.layers import SettingsError
from services.kit.config.settings import load
from services.store import QueueSpec, Store
from tests.cli.shell import Shell

PRINTED = """
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- apiVersion: penstock.dev/v1alpha1
  kind: Queue
  metadata:
    name: %(prefix)s-a
    namespace: shop
    uid: 0f1f5cb6-7e0d-4c31-9e0e-2f1f6a6c2f3b
    resourceVersion: "412"
    generation: 2
    creationTimestamp: "2026-11-27T10:11:12Z"
    finalizers: [penstock.dev/store]
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion":"penstock.dev/v1alpha1","kind":"Queue","metadata":{"name":"a"},"spec":{"maxLength":5}}
    managedFields:
    - {manager: kubectl, operation: Apply, apiVersion: penstock.dev/v1alpha1, time: "2026-11-27T10:11:12Z"}
  spec: {maxLength: 5, deletionPolicy: Retain}
  status:
    conditions: [{type: Ready, status: "True", reason: Declared, observedGeneration: 2}]
- apiVersion: penstock.dev/v1alpha1
  kind: Queue
  metadata: {name: b, namespace: shop}
  spec: {queueName: %(prefix)s-b}
"""


@pytest.mark.parametrize("name", [b"plain", b"not UTF-8 \xff\xc3", "注文 📦".encode(), b"line\nfeed"])
def test_output_of_queue_show_can_be_applied(shell: Shell, name: bytes) -> None:
    """Check that the output of `queue show` can be applied for any name, as TMQ's CREATE takes any bytes."""

    async def create(store: Store) -> None:
        await store.catalogue.declare(
            name.decode("utf-8", "surrogateescape"), QueueSpec(max_length=7), "edge:tmq"
        )

    shell.with_store(create)
    shown = shell.run("queue", "show", name).out
    changed = shown.replace(b"maxLength: 7", b"maxLength: 8")
    again = shell.run("queue", "apply", "-f", "-", "--json", stdin=changed).object
    assert (again["change"], again["name"].encode("utf-8", "surrogateescape")) == ("changed", name)
    (one,) = shell.run("queue", "list", name, "--json").objects
    assert one["spec"]["maxLength"] == 8


def test_a_new_queue_with_control_characters_is_refused_in_one_line(shell: Shell) -> None:
    documents = b'kind: Queue\nmetadata: {name: "n\\nl"}\n'
    output = shell.fails("queue", "apply", "-f", "-", code=1, stdin=documents)
    assert output.rstrip("\n") == (
        r"document_refused: -: document 1 (n\x0al): metadata.name: a queue's name has no control characters "
        "such as line feeds and tabs: choose another name for a new queue"
    )
    wrong = b'kind: Queue\nmetadata: {name: "n\\nl"}\nspec: {"a\\nb": 1}\n'
    output = shell.fails("queue", "apply", "-f", "-", code=2, stdin=wrong)
    assert output.startswith(r"bad_document: -: document 1 (n\x0al): spec.'a\nb': unknown; allowed: ")
    assert output.count("\n") <= 1


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ('{metadata: {name: "\\ud800"}, spec: {}}', "incomplete character"),
        ('{metadata: {name: a}, spec: {domain: "\\udcff"}}', "spec.domain: must be a valid string"),
        (
            '{kind: Peer, metadata: {name: "\\udcff"}, spec: {protocol: text, addresses: [a]}}',
            "metadata.name",
        ),
    ],
)
def test_only_queue_names_may_be_any_bytes(shell: Shell, document: str, problem: str) -> None:
    output = shell.run("queue", "apply", "-f", "-", stdin=document.encode(), code=2).err
    assert problem in output


def test_output_of_kubectl_can_be_applied(shell: Shell) -> None:
    printed = (PRINTED % {"prefix": "printed"}).encode()
    applied = shell.run("queue", "apply", "-f", "-", "--json", stdin=printed).objects
    assert [(one["change"], one["name"]) for one in applied] == [
        ("created", "printed-a"),
        ("created", "printed-b"),
    ]
    assert shell.run("queue", "show", "printed-a", "--json").object["spec"] == {
        "maxLength": 5,
        "ackLevel": "fsync",
    }


def test_a_bad_item_of_a_list_is_named(alone: Shell) -> None:
    text = (PRINTED % {"prefix": "x"}).replace("maxLength: 5,", "maxLenght: 5,")
    error = alone.fails(
        "queue", "apply", "-f", "-", "--store", "redis://127.0.0.1:1", code=2, stdin=text.encode()
    )
    assert error.startswith("bad_document: -: document 1, item 1 (x-a): spec.maxLenght: unknown; allowed: ")


def test_unreadable_file_is_a_bad_document(alone: Shell) -> None:
    alone.write("bad.yaml", "# first\nname: {{ .Values.name }}")
    store = ("--store", "redis://127.0.0.1:1")
    for arguments in (
        ("queue", "apply", "-f", "bad.yaml", *store),
        ("up", "--queues", "bad.yaml", *store),
        ("config", "--config", "bad.yaml"),
    ):
        assert alone.fails(*arguments, code=2).startswith("bad_document: bad.yaml: line 2, column ")


KEYS = st.sampled_from(
    ["apiVersion", "kind", "metadata", "spec", "status", "items", "name", "store", "edges", "url", "1"]
)
LEAVES: Any = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
LEAVES |= st.sampled_from(["Queue", "Peer", "List", "QueueList", "penstock.dev/v1alpha1", "1h"])
TREES: Any = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | LEAVES, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=50)
@given(st.dictionaries(KEYS, TREES) | TREES)
def test_any_document_is_accepted_or_refused(tree: Any) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "any.yaml")
        path.write_text(yaml.safe_dump(tree))
        with suppress(Failure):
            read_documents(path)
        with suppress(SettingsError):
            load(path)

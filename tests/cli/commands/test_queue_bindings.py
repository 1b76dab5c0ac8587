"""Test bindings to the text service in `queue create`, `apply` and `show` (pubsub.md 5.1, 5.2)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from tests.cli.shell import Shell

BINDINGS = {"subscribe": ["order.*", "audit"], "publish": "orders"}
DOCUMENT = (
    "metadata: {name: %s}\nspec: {bindings: {text: {subscribe: ['order.*', audit], publish: orders}}}\n"
)


def test_options_set_bindings(shell: Shell, new_queue: Callable[..., str]) -> None:
    """Check that each pattern has an option of its own, as commas are allowed in tags."""
    patterns = ["--bindings-text-subscribe", "a,b*", "--bindings-text-subscribe", "c"]
    name = new_queue(*patterns, "--bindings-text-publish", "all")
    spec = shell.run("queue", "show", name, "--json").object["spec"]
    assert spec["bindings"]["text"] == {"subscribe": ["a,b*", "c"], "publish": "all"}


def test_show_output_can_be_applied(shell: Shell) -> None:
    applied = shell.run("queue", "apply", "-f", "-", stdin=(DOCUMENT % "bound").encode())
    assert applied.text == "created: bound\n"
    document, _, _ = shell.run("queue", "show", "bound").text.partition("\n\n")
    assert yaml.safe_load(document)["spec"] == {"ackLevel": "fsync", "bindings": {"text": BINDINGS}}
    again = shell.run("queue", "apply", "-f", "-", stdin=document.encode())
    assert again.text == "unchanged: bound\n"


def test_document_can_remove_bindings(shell: Shell) -> None:
    shell.run("queue", "apply", "-f", "-", stdin=(DOCUMENT % "unbound").encode())
    changed = shell.run("queue", "apply", "-f", "-", stdin=b"metadata: {name: unbound}\n")
    assert changed.text == "changed: unbound\n"
    assert shell.run("queue", "show", "unbound", "--json").object["spec"] == {"ackLevel": "fsync"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--bindings-text-subscribe", "a", "--bindings-text-subscribe", "b c"], "subscribe.1: a pattern is"),
        (
            ["--domain", "other", "--bindings-text-publish", "a"],
            "bad_document: bindings.text needs domain 'main'",
        ),
    ],
)
def test_invalid_options_are_refused(shell: Shell, options: list[str], text: str) -> None:
    assert text in shell.fails("queue", "create", "bad-binding", *options, code=2)
    shell.fails("queue", "show", "bad-binding", code=4)


@pytest.mark.parametrize(
    ("spec", "output"),
    [
        ("{bindings: {text: {subscribe: abc}}}", "subscribe: write a list, as in [order.new, 'audit.*']"),
        ("{bindings: {mqtt: {}}}", "spec.bindings.mqtt: unknown; allowed: text, rqpMca, rqpCast, ring"),
    ],
)  # fmt: skip
def test_invalid_documents_are_refused(shell: Shell, spec: str, output: str) -> None:
    text = f"metadata: {{name: bad-binding}}\nspec: {spec}\n"
    error = shell.fails("queue", "apply", "-f", "-", code=2, stdin=text.encode())
    assert error.startswith("bad_document: -: document 1 (bad-binding): ")
    assert output in error

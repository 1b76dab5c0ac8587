"""Test inboxes and outboxes of rings in `queue create`, `apply` and `show` (ring.md 5.5, docs/store.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def gone(shell: Shell) -> Iterator[Callable[[str], None]]:
    """Yield a function that takes names of queues to delete after the test, because others use their groups."""
    names: list[str] = []
    yield names.append
    for name in names:
        shell.run("queue", "delete", name, "--yes")


def test_options_set_inbox_and_outbox(
    shell: Shell, new_queue: Callable[..., str], gone: Callable[[str], None]
) -> None:
    name = new_queue("--bindings-ring-inbox", "7", "--bindings-ring-outbox", "8")
    gone(name)
    document = shell.run("queue", "show", name, "--json").object["spec"]["bindings"]
    assert document == {"ring": {"inbox": 7, "outbox": 8}}
    error = shell.fails("queue", "create", "second", "--bindings-ring-inbox", "7", code=1)
    assert error.startswith(f"number_taken: queue '{name}' is the inbox of ring group 7: each group has one")
    shell.fails("queue", "show", "second", code=4)


def test_invalid_options_are_refused(shell: Shell) -> None:
    both = ("--bindings-ring-inbox", "7", "--bindings-ring-outbox", "7")
    error = shell.fails("queue", "create", "bad-ring", *both, code=2)
    assert "bindings.ring: inbox and outbox are both of group 7" in error
    shell.fails("queue", "show", "bad-ring", code=4)


def test_groups_are_checked_before_any_change(shell: Shell, gone: Callable[[str], None]) -> None:
    document = "metadata: {name: %s}\nspec: {bindings: {ring: {outbox: %d}}}\n"
    shell.run("queue", "apply", "-f", "-", stdin=(document % ("o1", 21)).encode())
    gone("o1")
    both = f"{document % ('o2', 22)}---\n{document % ('o3', 21)}".encode()
    error = shell.run("queue", "apply", "-f", "-", code=1, stdin=both).err
    assert "document 2 (o3): spec.bindings: queue 'o1' is the outbox of ring group 21: each group" in error
    shell.fails("queue", "show", "o2", code=4)

"""Test queues that receive from or send to RQP in `queue create`, `apply`, `show` (docs/cli.md, docs/store.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from services.store import Store
from tests.cli.shell import Shell

REMOTE = ("--remote-protocol", "rqp-mca", "--remote-queue-id", "7")
OTHER = (*REMOTE[:-1], "71")  # a different target


@pytest.fixture
def gone(shell: Shell) -> Iterator[Callable[[str], None]]:
    """Yield a function that takes names of queues to delete after the test, because others use their numbers."""
    names: list[str] = []
    yield names.append
    for name in names:
        shell.run("queue", "delete", name, "--yes")


def test_options_set_the_target(shell: Shell, new_queue: Callable[..., str]) -> None:
    peers = ("--remote-peers", "shop", "--remote-peers", "warehouse")
    name = new_queue(*REMOTE, *peers, "--no-remote-reliable", "--remote-max-message-bytes", "5")
    document = shell.run("queue", "show", name, "--json").object["spec"]
    assert document["remote"] == {
        "protocol": "rqp-mca",
        "queueId": 7,
        "peers": ["shop", "warehouse"],
        "reliable": False,
        "maxMessageBytes": 5,
    }
    assert shell.fails("put", name, "123456", code=1).startswith("too_large_for_peers: the message is larger")
    shell.run("put", name, "12345")


def test_options_set_numbers(
    shell: Shell, new_queue: Callable[..., str], gone: Callable[[str], None]
) -> None:
    name = new_queue(
        *("--bindings-rqp-mca-queue-id", "7", "--no-bindings-rqp-mca-exclusive"),
        *("--bindings-rqp-cast-key", "9", "--bindings-rqp-cast-duplicate-result", "success"),
    )
    gone(name)
    document = shell.run("queue", "show", name, "--json").object["spec"]["bindings"]
    assert document == {
        "rqpMca": {"queueId": 7, "exclusive": False},
        "rqpCast": {"key": 9, "duplicateResult": "success"},
    }
    error = shell.fails("queue", "create", "second", "--bindings-rqp-mca-queue-id", "7", code=1)
    assert error.startswith(f"number_taken: rqp-mca 7 is the number of queue '{name}'")
    shell.fails("queue", "show", "second", code=4)


def test_show_does_not_list_shared_consumers(shell: Shell, new_queue: Callable[..., str]) -> None:
    """Check that `show` lists an exclusive consumer only: the store does not record shared ones (rqp_mca.md 2.3)."""
    binding = ("--bindings-rqp-mca-queue-id", "4711")
    name = new_queue(*binding, "--no-bindings-rqp-mca-exclusive")
    not_shown = "shared (exclusive: false): its RQP/MCA consumers are not shown"
    assert not_shown in shell.run("queue", "show", name).text
    assert shell.stats(name)["reserved_by"] == ""

    async def work(store: Store) -> None:
        await store.open_domain().claims.reserve(await store.catalogue.find(name), "cast host 5", 60_000)

    shell.with_store(work)
    text = shell.run("queue", "show", name).text
    assert "cast host 5" in text
    assert not_shown not in text
    assert "not shown" not in shell.run("queue", "show", new_queue()).text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--remote-queue-id", "7"], "remote.protocol: missing"),
        ([*REMOTE, "--remote-key", "7"], "remote: key does not apply to protocol rqp-mca: remove it"),
    ],
)
def test_invalid_options_are_refused(shell: Shell, options: list[str], text: str) -> None:
    assert text in shell.fails("queue", "create", "bad-remote", *options, code=2)
    shell.fails("queue", "show", "bad-remote", code=4)


def numbered(**queues: int) -> bytes:
    return "---\n".join(
        f"metadata: {{name: {name}}}\nspec: {{bindings: {{rqpMca: {{queueId: {number}}}}}}}\n"
        for name, number in queues.items()
    ).encode()


def test_numbers_are_checked_before_any_change(shell: Shell, gone: Callable[[str], None]) -> None:
    shell.run("queue", "apply", "-f", "-", stdin=numbered(n1=101, n2=102))
    gone("n1")
    gone("n2")
    for text, expected in (
        (numbered(n3=103, n4=101), "document 2 (n4): spec.bindings: rqp-mca 101 is the number of queue 'n1'"),
        (numbered(n3=103, n4=103), "document 2 (n4): spec.bindings: rqp-mca 103 is the number of queue 'n3'"),
        (numbered(n1=102, n2=101), "document 1 (n1): spec.bindings: rqp-mca 102 is the number of queue 'n2'"),
    ):
        error = shell.run("queue", "apply", "-f", "-", code=1, stdin=text).err
        assert error.startswith("penstock: document_refused: -: ")
        assert expected in error
        shell.fails("queue", "show", "n3", code=4)
    passed_on = shell.run("queue", "apply", "-f", "-", stdin=numbered(n1=103, n2=101))
    assert passed_on.text == "changed: n1\nchanged: n2\n", "what one queue releases is free for the next"


def leading(**queues: str) -> bytes:
    return "---\n".join(
        f"metadata: {{name: {name}}}\nspec: {{remote: {{protocol: rqp-mca, queueId: 73, peers: [{peers}]}}}}\n"
        for name, peers in queues.items()
    ).encode()


def test_two_queues_with_one_target_are_refused(shell: Shell, gone: Callable[[str], None]) -> None:
    """Check that two queues with one target are refused, also before any change (rqp-mca.md, Transmission queues)."""
    shell.run("queue", "apply", "-f", "-", stdin=leading(r1="west", r2="south"))
    gone("r1")
    gone("r2")
    for text, expected in (
        (
            leading(r3="east", r4="north, west"),
            "document 2 (r4): spec.remote: queue 'r1' already leads to rqp-mca 73 at peer west",
        ),
        (
            leading(r3="east", r4="east"),
            "document 2 (r4): spec.remote: queue 'r3' already leads to rqp-mca 73 at peer east",
        ),
        (leading(r3=""), "document 1 (r3): spec.remote: queue 'r"),
        (
            leading(r1="", r2=""),
            "document 1 (r1): spec.remote: queue 'r2' already leads to rqp-mca 73 at peer south",
        ),
    ):
        error = shell.run("queue", "apply", "-f", "-", code=1, stdin=text).err
        assert error.startswith("penstock: document_refused: -: ")
        assert expected in error
        shell.fails("queue", "show", "r3", code=4)
    options = ("--remote-protocol", "rqp-mca", "--remote-queue-id", "73")
    error = shell.fails("queue", "create", "r3", *options, "--remote-peers", "west", code=1)
    assert error.startswith("number_taken: queue 'r1' already leads to rqp-mca 73 at peer west")
    passed_on = shell.run("queue", "apply", "-f", "-", stdin=leading(r1="east", r2="west"))
    assert passed_on.text == "changed: r1\nchanged: r2\n", "what one queue releases is free for the next"

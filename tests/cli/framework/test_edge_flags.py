"""Test flags that edges define, on `serve`, `up` and `config`; the command line itself defines none of them."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import services
from services.cli.commands.config import config
from services.cli.commands.serve import serve
from services.cli.commands.up import up
from services.kit.edge import edges
from tests.cli import fifth
from tests.cli.shell import NO_CONSOLE, Shell, running
from tests.kit.echo_edge import frame
from tests.kit.harness import exchange

ROOT = Path(__file__).parents[3]
NO_STORE = "redis://127.0.0.1:1"  # the fifth edge does not use the store


@pytest.fixture
def found(
    alone: Shell, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shell]:
    """Yield a shell whose commands, and the processes that they start, find the fifth edge."""
    folder = tmp_path_factory.mktemp("fifth")
    fifth.create(folder)
    monkeypatch.setattr(services, "__path__", [*services.__path__, str(folder / "found")])
    alone.environment["PYTHONPATH"] = f"{folder}:{ROOT}"
    yield alone
    for module in ("services.fifth.edge", "services.fifth"):
        sys.modules.pop(module, None)


@pytest.mark.parametrize("command", ["serve", "up", "config"])
def test_help_lists_edge_options(found: Shell, command: str) -> None:
    output = " ".join(found.run(command, "--help").text.split())
    assert "--cousin HOST:PORT fifth: whom to call; repeatable" in output
    assert "--frame-timeout SECONDS fifth: how long a frame may take" in output


def test_other_commands_have_no_edge_options(found: Shell) -> None:
    assert "--cousin" not in found.run("put", "--help").text
    assert "No such option" in found.fails("put", "q", "x", "--cousin", "a:1", code=2)


def test_config_shows_edge_options(found: Shell) -> None:
    found.write("penstock.yaml", "edges: {fifth: {neighbours: ['file:1'], frame_timeout_s: 1}}")
    environment = {"PENSTOCK_EDGES__FIFTH__NEIGHBOURS": "a:1,b:2"}
    document = found.run("config", "--json", **environment).object
    assert document["settings"]["edges"]["fifth"]["neighbours"] == ["a:1", "b:2"]
    assert document["origins"]["edges.fifth.neighbours"] == "PENSTOCK_EDGES__FIFTH__NEIGHBOURS"
    (row,) = [line for line in found.run("config", **environment).text.splitlines() if "fifth.neigh" in line]
    assert "  a:1, b:2  " in row
    flags = ["--cousin", "c:3", "--set", "edges.fifth.neighbours=[d:4]", "--cousin", "e:5"]
    document = found.run("config", "--json", *flags, **environment).object
    assert document["settings"]["edges"]["fifth"]["neighbours"] == ["c:3", "e:5"]
    assert document["origins"]["edges.fifth.neighbours"] == "--cousin"
    assert document["origins"]["edges.fifth.frame_timeout_s"] == "penstock.yaml"


@pytest.mark.parametrize(
    "command", [["config"], ["serve", "fifth", "--store", NO_STORE], ["up", "--store", NO_STORE]]
)
def test_errors_name_the_edge_option(found: Shell, command: list[str]) -> None:
    error = found.fails(*command, "--frame-timeout", "soon", code=2)
    assert error == (
        "bad_settings: edges.fifth.frame_timeout_s: must be a valid number, unable to parse string as a number,"
        " not 'soon' (from --frame-timeout)"
    )


@contextlib.contextmanager
def cousins() -> Iterator[list[socket.socket]]:
    """Yield the ports of two edges that are not loaded yet."""
    with contextlib.ExitStack() as stack:
        both = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        for one in both:
            one.settimeout(30)
        yield both


def flags_for(both: list[socket.socket]) -> list[str]:
    return [word for one in both for word in ("--cousin", f"127.0.0.1:{one.getsockname()[1]}")]


def test_serve_applies_edge_options(found: Shell) -> None:
    with cousins() as both, open(found.folder / "log", "wb") as log:
        serving = found.spawn(
            "serve", "fifth", "--store", NO_STORE, "--set", "health.port=0", *flags_for(both), stderr=log
        )
        try:
            for one in both:
                with one.accept()[0] as called:
                    assert exchange(called, frame(b"E", b"hello")) == b"hello"
            serving.send_signal(signal.SIGTERM)
            assert serving.wait(30) == 0
        finally:
            serving.kill()
            serving.wait()


def test_up_passes_each_edge_its_own_options(found: Shell) -> None:
    """Check that `up` passes each edge its own options: `serve` refuses those of other edges."""
    with cousins() as both, running(found, *flags_for(both), *NO_CONSOLE) as system:
        with contextlib.ExitStack() as stack:
            for one in both:
                called = stack.enter_context(one.accept()[0])
                assert exchange(called, frame(b"E", b"hello")) == b"hello"
        assert system.announcement["edges"].keys() >= {"fifth", "tmq"}
        assert system.end() == 0
    assert all("action" in json.loads(line) for line in system.err.splitlines())


def test_edge_options_are_unique() -> None:
    theirs = [flag.name for edge in edges().values() for flag in edge.flags]
    ours = {name for command in (serve, up, config) for option in command.params for name in option.opts}
    assert len(set(theirs)) == len(theirs)
    assert not set(theirs) & {*ours, "--help", "-h", "--config", "--set", "--workers"}
    for edge, flag in itertools.chain.from_iterable(
        ((edge, f) for f in edge.flags) for edge in edges().values()
    ):
        field, model = flag.field.partition(".")[0], edge.settings
        assert field in model.model_fields, f"{flag.name} of {edge.name} says {flag.field}"

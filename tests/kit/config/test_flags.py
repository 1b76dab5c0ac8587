"""Test the flags of an edge on its own program, `python -m services.<edge>`."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.kit.config.flags import GivenFlag
from services.kit.config.layers import SettingsError
from services.kit.config.settings import load
from tests.kit.echo_edge import EDGE, NEIGHBOUR, TIMEOUT, EchoSettings, frame
from tests.kit.harness import PATIENCE_S, Program, eventually, exchange


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REDIS_URL", raising=False)


@contextlib.contextmanager
def neighbour() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)
        yield server


def place(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


def test_dialled_connections_of_workers_are_counted_and_drained() -> None:
    workers = 2
    with neighbour() as first, neighbour() as second:
        flags = ["--neighbour", place(first), f"--neighbour={place(second)}"]
        with Program(flags=flags, workers=workers) as program, contextlib.ExitStack() as called:
            accepted = [one.accept()[0] for one in (first, second) * workers]
            for sock in accepted:
                called.enter_context(sock)
                assert exchange(sock, frame(b"E", b"hello")) == b"hello"
            name = 'penstock_connections{edge="echo",listener="neighbours"}'
            eventually(lambda: program.samples().get(name) == 2 * workers)
            program.signal(signal.SIGTERM)
            for sock in accepted:
                assert sock.recv(1) == b""
                sock.close()
            assert program.wait() == 0
            assert program.events("drain_reset") == []


def test_flag_overrides_every_other_source(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("penstock.yaml").write_text("edges: {echo: {neighbours: ['file:1'], frame_timeout_s: 1}}")
    monkeypatch.setenv("PENSTOCK_EDGES__ECHO__NEIGHBOURS", "environment:1")
    flags = {"edges": {"echo": {"neighbours": ["set:1"], "workers": 2}}}
    given = [GivenFlag("echo", NEIGHBOUR, ("a:1", "b:2")), GivenFlag("echo", TIMEOUT, ("7.5",))]
    settings = load(flags=flags, given=given)
    echo: EchoSettings = settings.edge(EDGE)
    assert (echo.neighbours, echo.frame_timeout_s, echo.workers) == (("a:1", "b:2"), 7.5, 2)
    assert settings.origin("edges", "echo", "neighbours") == "--neighbour"
    assert settings.origin("edges", "echo", "workers") == "the command line"
    assert given[0].words == ["--neighbour=a:1", "--neighbour=b:2"]


def test_repeatable_flag_without_value_gives_empty_list() -> None:
    Path("penstock.yaml").write_text("edges: {echo: {neighbours: ['file:1']}}")
    for values, neighbours in ((("",), ()), (("", "a:1"), ("a:1",))):
        echo: EchoSettings = load(given=[GivenFlag("echo", NEIGHBOUR, values)]).edge(EDGE)
        assert echo.neighbours == neighbours


def test_error_names_the_flag() -> None:
    given = [GivenFlag("echo", TIMEOUT, ("soon",))]
    with pytest.raises(SettingsError) as caught:
        load(given=given).edge(EDGE)
    assert caught.value.lines == [
        "edges.echo.frame_timeout_s: must be a valid number, unable to parse string as a number, not 'soon'"
        " (from --frame-timeout)"
    ]


def test_help_of_an_edge_lists_its_flags() -> None:
    with Program(flags=["--help"]) as program:
        assert program.wait() == 0
        output = " ".join(" ".join(program.printed).split())
        assert "--neighbour HOST:PORT whom to call, 100% of the time" in output

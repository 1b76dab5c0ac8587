"""Test that the generator stops at its bound, keeps its pace, and loads only loopback."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess

import pytest

from benchmarks.generator import HERE, Bound, Generator, Load, LoadFailed, is_loopback
from benchmarks.peers.ceiling import Ceiling
from benchmarks.peers.peer import Operation, Shape, dial
from benchmarks.process import Workshop
from tests.benchmarks.conftest import Server


def test_a_silent_peer_costs_the_time_limit_and_the_grace(generator: Generator, server: Server) -> None:
    load = Load("tmq-put", [server.dial(lambda: lambda chunk: b"")], [b"request"], window=1)
    outcome = generator.run(load, Bound(1000, 0.1))
    assert (outcome.messages, outcome.settled) == (0, 0)
    assert 0.1 <= outcome.seconds < 2


def test_the_pace_is_not_exceeded(generator: Generator) -> None:
    with generator.sink(4, b"\1") as port, contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(dial(port)) for _ in range(3)]
        outcome = generator.run(Load("tmq-put", sockets, [b"four"] * 3, window=1), Bound(50, 20, rate=500))
    assert outcome.messages == 50
    assert outcome.seconds >= 49 / 500


def test_the_ceiling_is_measured_both_ways(generator: Generator, place: Workshop) -> None:
    outcomes = Ceiling(place).measure(generator, Shape(2, 8), Bound(20, 5))
    assert {operation: outcome.messages for operation, outcome in outcomes.items()} == {
        Operation.PUT: 1000,
        Operation.TAKE: 1000,
    }


def test_load_on_other_addresses_than_loopback_is_refused() -> None:
    near, far = socket.socketpair()
    with near, far:
        assert not is_loopback(near)
        with pytest.raises(LoadFailed, match="loopback"):
            Generator.python().run(Load("tmq-put", [near], [b"x"], 1), Bound(1, 1))


def test_program_refuses_other_addresses_than_loopback(generator: Generator) -> None:
    near, far = socket.socketpair()
    with near, far:
        command = [*generator.command, "--rule", "tmq-put", "--fds", str(near.fileno())]
        request = struct.pack(">I", 1) + b"x"
        ended = subprocess.run(
            command, input=request, capture_output=True, pass_fds=[near.fileno()], cwd=HERE.parent
        )
        far.setblocking(False)
        with pytest.raises(BlockingIOError):
            far.recv(1)
    assert ended.returncode == 2
    assert b"not on loopback" in ended.stderr


def test_without_a_compiler_it_is_python(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.generator.find_compiler", lambda: None)
    assert Generator.build(tmp_path).language == "Python"  # type: ignore[arg-type]


def test_a_compiler_that_fails_is_none(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.generator.find_compiler", lambda: "/bin/false")
    assert Generator.build(tmp_path).language == "Python"  # type: ignore[arg-type]


def test_invalid_option_is_named_in_the_error(built: Generator, server: Server) -> None:
    load = Load("no-such-rule", [server.dial(lambda: lambda chunk: b"")], [b"x"], 1)
    with pytest.raises(LoadFailed, match="rule"):
        built.run(load, Bound(1, 1))

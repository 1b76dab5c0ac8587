"""Test several processes on one port, and their supervisor."""

from __future__ import annotations

import os
import signal
import time
from importlib.metadata import version

import pytest
from prometheus_client import ProcessCollector

from services.kit.net.acceptor import AddressInUse, open_bound, open_listening
from services.kit.workers.workers import reserved_ports
from tests.kit.echo_edge import EchoSettings, frame
from tests.kit.harness import PATIENCE_S, Program, eventually, exchange, receive
from tests.kit.workers.worker_processes import (
    ACCEPTED,
    OPEN,
    READY,
    RECEIVED,
    children,
    connect_to_each,
)


def test_workers_share_a_port_and_report_as_one(pair: Program) -> None:
    with pair as program:
        eventually(lambda: program.page("/readyz") == (200, "ok\n"))
        assert len({event["port"] for event in program.events("listening")}) == 1
        found = connect_to_each(program, 2)
        assert len(children(program)) == 3
        eventually(lambda: program.samples()[OPEN] == 2)
        samples = program.samples()
        accepted = samples[ACCEPTED]
        eventually(lambda: program.samples()[RECEIVED] == accepted * len(frame(b"E", b"who")))
        assert samples[READY] == 1
        # of four processes
        one = ProcessCollector(pid=lambda: program.process.pid, registry=None).collect()
        alone = {family.name: family.samples[0].value for family in one}
        assert samples["process_resident_memory_bytes"] > 2 * alone["process_resident_memory_bytes"]
        assert samples["process_cpu_seconds_total"] >= alone["process_cpu_seconds"]
        assert samples["process_start_time_seconds"] == alone["process_start_time_seconds"]
        assert any(name.startswith("python_info{") for name in samples)
        assert samples[f'penstock_build_info{{version="{version("penstock")}"}}'] == 1
        program.signal(signal.SIGTERM)
        for sock in found.values():
            assert sock.recv(1) == b""
            sock.close()
        assert program.wait() == 0
        assert sorted(program.printed) == ["close", "close", "stop_taking", "stop_taking"]
        assert len(program.events("drained")) == 2


def test_drain_reaches_all_workers_and_the_health_page() -> None:
    with Program("drain.grace_s=1", workers=2) as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        with program.connect() as sock:
            sock.sendall(frame(b"W", b"1.5"))
            assert exchange(sock, frame(b"E", b"begun")) == b"begun"
            program.signal(signal.SIGTERM)
            eventually(lambda: program.page("/readyz") == (503, "accepting: draining\n"))
            assert receive(sock) == b"done"
        assert program.wait() == 0


def test_second_signal_ends_at_once(pair: Program) -> None:
    with pair as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        sock = program.connect()
        sock.sendall(frame(b"W", b"60"))
        assert exchange(sock, frame(b"E", b"begun")) == b"begun"
        program.signal(signal.SIGTERM)
        program.event("draining", 2)
        started = time.monotonic()
        program.signal(signal.SIGINT)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
        assert program.wait() == 1
        assert time.monotonic() - started < PATIENCE_S / 2


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGHUP])
def test_terminal_signal_drains_all_workers(signum: signal.Signals) -> None:
    with Program(workers=2, group=True) as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        with program.connect() as sock:
            sock.sendall(frame(b"W", b"0.5"))
            assert exchange(sock, frame(b"E", b"begun")) == b"begun"
            os.killpg(program.process.pid, signum)
            if signum == signal.SIGHUP:  # both the kernel and the shell may send it
                program.event("draining", 2)
                os.killpg(program.process.pid, signum)
            assert receive(sock) == b"done"
        assert program.wait() == 0


def test_port_shared_by_another_program_is_refused() -> None:
    """Check that a port shared by another program is refused.

    SO_REUSEPORT would give it half of the connections.
    """
    with open_bound("127.0.0.1", 0, reuse_port=True) as other:
        other.listen()
        port = other.getsockname()[1]
        expected = f"cannot listen on 127.0.0.1 port {port}: Address already in use"
        with pytest.raises(AddressInUse, match=expected), reserved_ports("echo", _echo("127.0.0.1", port)):
            pass


@pytest.mark.parametrize(
    ("first", "second"),
    [("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "0.0.0.0"), ("127.0.0.1", "127.0.0.1"), ("::", "127.0.0.1")],
)
def test_two_supervisors_cannot_share_a_port(first: str, second: str) -> None:
    """Check that two supervisors cannot share a port, whether or not the first one's workers listen yet."""
    with reserved_ports("echo", _echo(first, 0)) as taken:
        port = taken.listeners["echo"].port
        refusal = rf"cannot listen on {second} port {port}: Address already"
        with pytest.raises(AddressInUse, match=refusal), reserved_ports("echo", _echo(second, port)):
            pass
        with (
            open_listening(first, port, ("a", "port"), reuse_port=True),
            pytest.raises(AddressInUse, match=refusal),
            reserved_ports("echo", _echo(second, port)),
        ):
            pass
    with reserved_ports("echo", _echo(second, port)):
        pass


def _echo(host: str, port: int) -> EchoSettings:
    return EchoSettings.model_validate({"listeners": {"echo": {"host": host, "port": port}}})


def test_unusable_settings_end_all_workers() -> None:
    with open_bound("127.0.0.1", 0) as other:
        other.listen()
        port = other.getsockname()[1]
        with Program(f"health.port={port}", workers=2) as program:
            assert program.wait() == 2
            expected = f"penstock: cannot listen on 127.0.0.1 port {port}: Address already in use"
            assert any(line.get("line", "").startswith(expected) for line in program.log)


def test_limits_are_divided_among_workers() -> None:
    with Program("edges.echo.listeners.echo.max_connections=2", workers=2) as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        for _ in range(50):
            program.connect()
        refused = 'penstock_refusals_total{edge="echo",reason="connection_limit"}'
        eventually(lambda: program.samples().get(refused) == 48)
        assert program.samples()[OPEN] == 2

"""Several processes on one port, and the one that looks after them."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import pytest
from prometheus_client import ProcessCollector

from services.kit.acceptor import bind
from services.kit.layers import SettingsError
from services.kit.workers import BACKOFF_LAST_S, STABLE_S, Child
from tests.kit.echo_edge import frame
from tests.kit.harness import PATIENCE_S, Program, eventually, exchange, receive

ACCEPTED = 'penstock_connections_opened_total{edge="echo",listener="echo"}'
OPEN = 'penstock_connections{edge="echo",listener="echo"}'
READY = 'penstock_ready{edge="echo"}'
DEATHS = 'penstock_worker_deaths_total{edge="echo"}'
RECEIVED = 'penstock_received_bytes_total{edge="echo",listener="echo"}'


def children(program: Program) -> list[int]:
    """The process ids of the workers, and of the one that answers for them."""
    pid = program.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def owner(program: Program, sock: socket.socket) -> int:
    """Which child has the other end of a connection."""
    found = holder(program, sock.getsockname()[1], 2, "01")
    assert found is not None, "nobody has it"
    return found


def holder(program: Program, port: int, column: int, state: str) -> int | None:
    """Which child has the socket with that port, as its own (1) or the other's (2), in that state."""
    wanted = f"{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = [row[9] for row in rows if row[column].endswith(":" + wanted) and row[3] == state]
    for pid in children(program):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if os.readlink(entry) in [f"socket:[{inode}]" for inode in inodes]:
                return pid
    return None


def connect_to_each(program: Program, number: int) -> dict[int, socket.socket]:
    """A connection to each of so many workers; the kernel decides which one a connection gets."""
    found: dict[int, socket.socket] = {}
    for _ in range(200):
        sock = program.connect()
        assert exchange(sock, frame(b"E", b"who")) == b"who"
        pid = owner(program, sock)
        if pid in found:
            sock.close()
        else:
            found[pid] = sock
        if len(found) == number:
            return found
    raise AssertionError("the kernel favours one worker")


def metrics_folder(worker: int) -> Path:
    """Where all of them count."""
    maps = Path(f"/proc/{worker}/maps").read_text().splitlines()
    return next(Path(line.split()[-1]).parent for line in maps if line.endswith(f"counter_{worker}.db"))


@pytest.fixture
def pair() -> Program:
    return Program(workers=2)


def test_both_serve_one_port_and_answer_as_one(pair: Program) -> None:
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
        assert samples["process_cpu_seconds_total"] > alone["process_cpu_seconds"]
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


def test_a_killed_worker_is_started_again_and_its_counts_stay(pair: Program) -> None:
    with pair as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        found = connect_to_each(program, 2)
        accepted = program.samples()[ACCEPTED]
        victim, survivor = found
        assert list(metrics_folder(survivor).glob(f"*_{victim}.db"))
        os.kill(victim, signal.SIGKILL)
        ended = program.event("child_ended")
        assert (ended["pid"], ended["status"]) == (victim, -9)
        eventually(lambda: len(program.events("started")) == 3)
        eventually(lambda: program.page("/readyz")[0] == 200)
        assert victim not in children(program)
        samples = program.samples()
        assert samples[ACCEPTED] == accepted  # counters of the dead still count
        assert samples[OPEN] == 1  # its gauges do not
        assert samples[DEATHS] == 1
        eventually(lambda: not list(metrics_folder(survivor).glob(f"*[_-]{victim}*")))
        assert program.samples()[ACCEPTED] == accepted
        for sock in found.values():
            sock.close()
        for sock in connect_to_each(program, 2).values():
            sock.close()
        program.signal(signal.SIGTERM)
        assert program.wait() == 0


def test_one_that_is_dead_is_not_ready(pair: Program) -> None:
    """It says nothing any more, and those that live are."""
    with pair as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        samples = program.samples()
        assert (samples[READY], samples[DEATHS]) == (1, 0)
        health = holder(program, program.event("health_listening")["port"], 1, "0A")
        worker = next(pid for pid in children(program) if pid != health)
        for death in range(1, 5):
            known = {*children(program)}
            os.kill(worker, signal.SIGKILL)
            program.event("child_ended", death)
            worker = eventually(lambda known=known: {*children(program)} - known).pop()
        os.kill(worker, signal.SIGKILL)
        program.event("child_ended", 5)
        program.signal(signal.SIGSTOP)  # it would start it again in 1.6 s
        assert program.page("/readyz")[1] in ("worker 0: ended\n", "worker 1: ended\n")
        samples = program.samples()
        assert (samples[READY], samples[DEATHS]) == (0, 5)
        program.signal(signal.SIGCONT)
        program.signal(signal.SIGTERM)
        assert program.wait() == 0
        assert len(program.events("child_ended")) == 5  # who ends as he was told to is no death


def test_not_ready_while_one_of_them_is_not(tmp_path: Path) -> None:
    flag = tmp_path / "away"
    with Program(f"edges.echo.unready_while={flag}", workers=2) as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        flag.touch()
        eventually(lambda: program.page("/readyz") == (503, "worker 0: the flag is up\n"))
        assert program.page("/healthz") == (200, "ok\n")


def test_children_die_with_their_parent(pair: Program) -> None:
    with pair as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        pids = children(program)
        assert len(pids) == 3
        program.signal(signal.SIGKILL)
        program.wait()
        for pid in pids:
            eventually(lambda pid=pid: not is_running(pid))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_drain_reaches_all_and_is_answered_for() -> None:
    with Program("drain.grace_s=1", workers=2) as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        with program.connect() as sock:
            sock.sendall(frame(b"W", b"1.5"))
            assert exchange(sock, frame(b"E", b"begun")) == b"begun"
            program.signal(signal.SIGTERM)
            eventually(lambda: program.page("/readyz") == (503, "draining\n"))
            assert receive(sock) == b"done"
        assert program.wait() == 0


def test_a_second_signal_does_not_wait(pair: Program) -> None:
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


def test_ctrl_c_at_a_terminal_reaches_the_whole_group_and_is_one_wish() -> None:
    with Program(workers=2, group=True) as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        with program.connect() as sock:
            sock.sendall(frame(b"W", b"0.5"))
            assert exchange(sock, frame(b"E", b"begun")) == b"begun"
            os.killpg(program.process.pid, signal.SIGINT)
            assert receive(sock) == b"done"
        assert program.wait() == 0


def test_a_port_that_somebody_else_shares_is_refused() -> None:
    """SO_REUSEPORT would give half of the connections to a stranger who asks for it too."""
    with bind("127.0.0.1", 0, reuse_port=True) as stranger:
        stranger.listen()
        port = stranger.getsockname()[1]
        with Program(f"edges.echo.listeners.echo.port={port}", workers=2) as program:
            assert program.wait() == 2
            expected = f"penstock: cannot listen on 127.0.0.1 port {port}: Address already in use"
            assert {"line": expected} in program.log


def test_what_no_restart_will_mend_ends_them_all() -> None:
    with bind("127.0.0.1", 0, reuse_port=False) as stranger:
        stranger.listen()
        with Program(f"health.port={stranger.getsockname()[1]}", workers=2) as program:
            assert program.wait() == 2
            assert program.event("unusable")["message"].startswith("cannot serve health on ")


def test_what_was_usable_once_is_waited_for() -> None:
    """A child that starts again finds its address taken: the others serve, and it is tried again."""
    with bind("127.0.0.1", 0, reuse_port=False) as free:
        port = free.getsockname()[1]
    with Program(f"health.port={port}", workers=2) as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        sock = program.connect()
        with eventually(lambda: taken(program, port)) as stranger:
            stranger.listen()
            eventually(lambda: [each for each in program.events("child_ended") if each["status"] == 2])
            assert exchange(sock, frame(b"E", b"still here")) == b"still here"
            before = len(program.events("health_listening"))  # it may have come back in time, once or more
        assert program.event("health_listening", before + 1)["port"] == port
        eventually(lambda: program.page("/readyz")[0] == 200)


def taken(program: Program, port: int) -> socket.socket | None:
    """The port, from the child that listens there."""
    with suppress(FileNotFoundError):  # one of them has ended meanwhile
        if (child := holder(program, port, 1, "0A")) is not None:
            os.kill(child, signal.SIGKILL)
    try:
        return bind("127.0.0.1", port, reuse_port=False)
    except SettingsError:
        return None


def test_the_caps_are_shared_out() -> None:
    with Program("edges.echo.listeners.echo.max_connections=2", workers=2) as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        for _ in range(50):
            program.connect()
        refused = 'penstock_refusals_total{edge="echo",reason="connection_limit"}'
        eventually(lambda: program.samples().get(refused) == 48)
        assert program.samples()[OPEN] == 2


def test_the_back_off_grows_and_is_forgotten() -> None:
    child = Child("worker 0", lambda: 0, 0)
    pauses = [child.back_off(now=1.0) for _ in range(12)]
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert pauses[-1] == BACKOFF_LAST_S
    assert child.restart_at == 1.0 + BACKOFF_LAST_S
    child.started = 100.0
    assert child.back_off(now=100.0 + STABLE_S + 1) == 0.1

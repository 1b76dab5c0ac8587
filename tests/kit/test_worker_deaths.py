"""A worker that dies is missed, counted, and started again; what it counted stays."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

from services.kit.acceptor import bind
from services.kit.layers import SettingsError
from services.kit.workers import BACKOFF_LAST_S, STABLE_S, Child
from tests.kit.echo_edge import frame
from tests.kit.harness import Program, eventually, exchange
from tests.kit.worker_processes import (
    ACCEPTED,
    DEATHS,
    OPEN,
    READY,
    children,
    connect_to_each,
    holder,
    metrics_folder,
)


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


def kill_for_good(program: Program, worker: int) -> int:
    """Until who would start it again is stopped in time, which has longer each time; how often that was."""
    folder = metrics_folder(worker)
    for deaths in range(1, 9):
        known = {*children(program)}
        os.kill(worker, signal.SIGKILL)
        program.event("child_ended", deaths)
        # before that it may hold the lock that /metrics waits for
        eventually(lambda worker=worker: not list(folder.glob(f"*_{worker}.db")))
        program.signal(signal.SIGSTOP)
        if program.page("/readyz")[1].endswith("ended\n") and len(children(program)) == len(known) - 1:
            return deaths
        program.signal(signal.SIGCONT)
        worker = eventually(lambda known=known: {*children(program)} - known).pop()
    raise AssertionError("it was started again each time")


def test_one_that_is_dead_is_not_ready(pair: Program) -> None:
    """It says nothing any more, and those that live are."""
    with pair as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        samples = program.samples()
        assert (samples[READY], samples[DEATHS]) == (1, 0)
        health = holder(program, program.event("health_listening")["port"], 1, "0A")
        worker = next(pid for pid in children(program) if pid != health)
        deaths = kill_for_good(program, worker)
        assert program.page("/readyz")[1] in ("worker 0: ended\n", "worker 1: ended\n")
        samples = program.samples()
        assert (samples[READY], samples[DEATHS]) == (0, deaths)
        program.signal(signal.SIGCONT)
        program.signal(signal.SIGTERM)
        assert program.wait() == 0
        assert len(program.events("child_ended")) == deaths  # who ends as he was told to is no death


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


def test_the_back_off_grows_and_is_forgotten() -> None:
    child = Child("worker 0", lambda: 0, 0)
    pauses = [child.back_off(now=1.0) for _ in range(12)]
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert pauses[-1] == BACKOFF_LAST_S
    assert child.restart_at == 1.0 + BACKOFF_LAST_S
    child.started = 100.0
    assert child.back_off(now=100.0 + STABLE_S + 1) == 0.1

"""Test that a dead worker is detected, counted and restarted, and its counts are kept."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.kit.harness import Program, eventually
from tests.kit.workers.worker_processes import (
    ACCEPTED,
    DEATHS,
    OPEN,
    READY,
    children,
    connect_to_each,
    holder,
    metrics_folder,
)


def test_killed_worker_is_restarted_and_its_counts_kept(pair: Program) -> None:
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
        assert samples[ACCEPTED] == accepted  # counters of the dead worker still count
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
    """Kill it until its supervisor is stopped during the growing restart delay; return the number of kills."""
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


def test_dead_worker_is_not_ready(pair: Program) -> None:
    """Check that a dead worker makes the process unready, while live ones are ready."""
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
        assert len(program.events("child_ended")) == deaths  # a worker that ends as requested is no death


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


def test_killed_health_child_comes_back_at_its_port(pair: Program) -> None:
    """Check that a killed health child returns at its port.

    The supervisor keeps the socket: no other program can bind it, and an ephemeral port stays the same.
    """
    with pair as program:
        eventually(lambda: program.page("/readyz")[0] == 200)
        port = program.event("health_listening")["port"]
        workers = connect_to_each(program, 2)
        (health,) = set(children(program)) - set(workers)
        os.kill(health, signal.SIGKILL)
        eventually(lambda: health not in children(program))
        assert program.event("health_listening", 2)["port"] == port
        assert eventually(lambda: program.page("/readyz")[0] == 200)
        for sock in workers.values():
            sock.close()

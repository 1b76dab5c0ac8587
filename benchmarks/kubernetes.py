"""python -m benchmarks.kubernetes: measure the operator against a real API server, beside a bare kopf handler.

It applies a thousand Queues at once, and measures the time until all are Ready, and the memory in use. The bare
handler sets a condition and has no store: it shows the cost of kopf and the API server alone. Then one Queue and one
Peer are applied at a time, and writes about unchanged Queues are counted. Needs what `make kubernetes` builds. The exit
status is 1 if any figure exceeds its bound.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.machine import current_commit, describe
from benchmarks.report import COLOURS, finding_row
from benchmarks.results import RESULTS, Finding, Target
from services.system.pdeathsig import die_with_parent
from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import DEFINITIONS, Cluster
from tests.kubernetes.namespaces import make_namespace
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen, peer, queue
from tests.servers import PROGRAMS, Server, eventually

BARE = Path(__file__).parent / "baseline" / "bare_kopf.py"
NUMBER = 1000
SINGLE = 30
PATIENCE_S = 180.0
POLL_S = 0.02
WRITES = re.compile(
    r'^apiserver_request_total\{[^}]*resource="(queues|events)"[^}]*verb="(PATCH|APPLY|POST|PUT)"[^}]*\} (\S+)',
    re.M,
)


def queues(number: int) -> list[dict[str, Any]]:
    return [queue(f"q{each:04}", maxLength=each + 1) for each in range(number)]


def ready(seen: Seen) -> int:
    """Return the number of Queues that are Ready, from one call: a watch of each would be slower."""
    path = "{range .items[*]}{.status.conditions[0].status}{'\\n'}{end}"
    words = (
        "get",
        "queues.penstock.dev",
        "--namespace",
        seen.namespace,
        "--chunk-size=0",
        "-o",
        f"jsonpath={path}",
    )
    return seen.cluster.kubectl(*words).split().count("True")


def applied(seen: Seen, number: int) -> tuple[float, float]:
    """Return the seconds until all were applied, and until all were Ready."""
    began = time.monotonic()
    listed = {"apiVersion": "v1", "kind": "List", "items": queues(number)}
    words = ("apply", "--namespace", seen.namespace, "--filename", "-")
    seen.cluster.kubectl(*words, given=json.dumps(listed))
    done = time.monotonic() - began
    eventually(lambda: ready(seen) == number, PATIENCE_S)
    return done, time.monotonic() - began


def memory(pid: int) -> int:
    """Return the process's memory in use (RSS), MiB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) >> 10


@contextmanager
def bare(cluster: Cluster, namespace: str, folder: Path) -> Iterator[int]:
    """Run the bare handler and yield its process id."""
    with (folder / "bare.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--standalone", "-n", namespace, str(BARE)],
            env={**os.environ, **cluster.environment, "PATH": os.environ["PATH"]},
            stderr=log,
            stdout=log,
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def one_at_a_time(number: int, make: Callable[[int], None], is_there: Callable[[int], bool]) -> list[float]:
    """Return for each object the seconds from the answer to the apply until `is_there` is true."""
    taken = []
    for each in range(number):
        make(each)
        began = time.monotonic()
        while not is_there(each):
            time.sleep(POLL_S)
        taken.append(time.monotonic() - began)
    return taken


def writes(seen: Seen) -> int:
    """Return the number of requests that changed Queues or wrote Events, as counted by the API server."""
    return int(
        sum(float(found[2]) for found in WRITES.findall(seen.cluster.kubectl("get", "--raw", "/metrics")))
    )


def measure(folder: Path, number: int, steady_s: float, report: Callable[[str], None]) -> dict[str, Any]:
    server = ApiServer(folder, {}).start()
    store = Server(next(iter(PROGRAMS)), folder / "store").start()
    try:
        cluster = server.as_user()
        cluster.kubectl("apply", "--filename", str(DEFINITIONS))
        cluster.kubectl("wait", "--for=condition=Established", "--filename", str(DEFINITIONS))
        report("the bare handler")
        lone = Seen(cluster, make_namespace(cluster))
        with bare(cluster, lone.namespace, folder) as pid:
            bare_applied, bare_ready = applied(lone, number)
            bare_memory = memory(pid)
        report("the operator")
        seen = Seen(cluster, make_namespace(cluster))
        program = OperatorProgram(cluster, store.url, folder, namespaces=seen.namespace).start().ready()
        try:
            return {
                "queues": number,
                "bare": {"applied_s": bare_applied, "ready_s": bare_ready, "memory_mib": bare_memory},
                "operator": _operator(program, seen, Keeper(store), number, steady_s, report),
            }
        finally:
            program.kill()
    finally:
        store.end()
        server.end()


def _operator(
    program: OperatorProgram,
    seen: Seen,
    keeper: Keeper,
    number: int,
    steady_s: float,
    report: Callable[[str], None],
) -> dict[str, Any]:
    done, ready_s = applied(seen, number)
    report(f"nothing happens for {steady_s:.0f} s")
    eventually(lambda: program.metric("penstock_operator_waiting") == 0, PATIENCE_S)
    before = writes(seen)
    time.sleep(steady_s)
    written = writes(seen) - before
    report("one at a time")
    queue_s = one_at_a_time(
        SINGLE,
        lambda each: seen.apply(queue(f"one-{each}")),
        lambda each: seen.ready("queue", f"one-{each}")[0] == "True",
    )
    peer_s = one_at_a_time(
        SINGLE, lambda each: seen.apply(peer(f"one-{each}")), lambda each: f"one-{each}" in keeper.peers()
    )
    return {
        "applied_s": done,
        "ready_s": ready_s,
        "memory_mib": program.memory() >> 20,
        "steady_s": steady_s,
        "writes_while_steady": written,
        "one_queue_s": {"median": statistics.median(queue_s), "max": max(queue_s)},
        "one_peer_s": {"median": statistics.median(peer_s), "max": max(peer_s)},
    }


def findings(found: dict[str, Any]) -> list[Finding]:
    """Return the findings, with the targets of the operator."""
    ours = found["operator"]

    def held(what: str, value: float, unit: str, most: float) -> Finding:
        return Finding("kubernetes", what, (value,), unit, Target("<=", most))

    return [
        held(f"{found['queues']} Queues Ready", ours["ready_s"], "s", 20),
        held("memory in use", ours["memory_mib"], "MiB", 150),
        held(f"one Queue Ready, the longest of {SINGLE}", ours["one_queue_s"]["max"], "s", 2),
        held(f"one Peer in the store, the longest of {SINGLE}", ours["one_peer_s"]["max"], "s", 2),
        held(
            f"requests that wrote, in {ours['steady_s']:.0f} s without a change",
            ours["writes_while_steady"],
            "",
            0,
        ),
    ]


def show(found: dict[str, Any], console: Console) -> None:
    ours, theirs = found["operator"], found["bare"]
    table = Table(
        "", "operator", "bare kopf handler", "ratio", title=f"{found['queues']} Queues applied at once"
    )
    for name, unit in (("applied_s", "s"), ("ready_s", "s"), ("memory_mib", "MiB")):
        ratio = ours[name] / theirs[name]
        table.add_row(name, f"{ours[name]:.1f} {unit}", f"{theirs[name]:.1f} {unit}", f"{ratio:.2f}")
    console.print(table)
    for name in ("one_queue_s", "one_peer_s"):
        console.print(f"{name}: median {ours[name]['median']:.3f} s of {SINGLE}")
    verdicts = Table("", "found", "wanted", "verdict", title="bounds")
    for finding in findings(found):
        verdicts.add_row(*finding_row(finding), style=COLOURS.get(finding.verdict))
    console.print(verdicts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kubernetes", description=__doc__)
    parser.add_argument("--queues", type=int, default=NUMBER)
    parser.add_argument("--steady", type=float, default=600.0, metavar="SECONDS")
    options = parser.parse_args(arguments)
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), options.queues, options.steady, console.log)
        found |= {"machine": asdict(describe(Path(folder))), "commit": current_commit()}
    found["verdicts"] = {each.what: each.verdict for each in findings(found)}
    (RESULTS / "kubernetes.json").write_text(json.dumps(found, indent=1, default=str) + "\n", "utf-8")
    show(found, console)
    return int("missed" in found["verdicts"].values())


if __name__ == "__main__":
    sys.exit(main())

"""The script of `helm test`, on this machine: charts/penstock/README.md, "Test"."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from tests.chart.chart import NAME, nested, render
from tests.chart.places import places
from tests.cli.shell import Shell, Up, running
from tests.kit.authority import Authority
from tests.kubernetes.cluster import CHART
from tests.servers import free_port

SCRIPT = CHART / "files" / "scripts" / "exchange.py"
ROOT = Path(__file__).parents[2]
EDGES = ("pubsub", "ring", "rqp", "tmq")


def environment(up: Up) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "operator"))),
        "REDIS_URL": up.tenant["url"],
    }


def run(up: Up, places: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the script as in the pod: in another folder than its packages."""
    return subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**environment(up), **places},
        cwd=up.shell.folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_message_passes_every_edge_and_is_cleaned_up(up: Up) -> None:
    done = run(up, places(up))
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["pubsub", "ring", "rqp", "tmq"]
    assert all(line.endswith(": sent and received") for line in lines)
    assert up.shell.run("queue", "list", "--json").objects == []


def test_edge_restricted_to_networks_is_skipped() -> None:
    """Check that an edge restricted to networks is skipped, as the test's pod may be outside them."""
    allow = nested("edges.tmq.settings.listeners.document.allow", ["10.20.0.0/16"])
    tested = {name for name in render(allow).env(f"Pod/{NAME}-test") if name.startswith("TEST_")}
    assert tested == {"TEST_PUBSUB", "TEST_RING", "TEST_RQP"}


def test_edges_without_pods_and_with_tls() -> None:
    files = {"certificate": "/a/tls.crt", "key": "/a/tls.key"}
    asking = {"settings": {"listeners": {"mca": {"tls": {**files, "client_ca": "/a/ca.crt"}}}}}
    rendered = render(
        {
            "edges": {
                "tmq": {"settings": {"listeners": {"document": {"tls": files}}}},
                "pubsub": {"replicas": 0},
                "rqp": asking,
            }
        }
    )
    tested = {
        name: value for name, value in rendered.env(f"Pod/{NAME}-test").items() if name.startswith("TEST_")
    }
    assert tested == {"TEST_TMQ": f"tls://{NAME}-tmq:6161", "TEST_RING": f"tcp://{NAME}-ring:9000"}


def test_helm_test_uses_an_image_of_edges() -> None:
    """Check that `helm test` uses an image of edges, as the default image may be missing if each edge has its own."""
    own = {name: {"image": {"repository": f"own/{name}", "pullPolicy": "Always"}} for name in EDGES}
    for edges, image in (
        ({"tmq": own["tmq"]}, "penstock-edge:"),
        (own, "own/pubsub:"),
        ({**own, "pubsub": {**own["pubsub"], "replicas": 0}}, "own/ring:"),
    ):
        container = render({"edges": edges}).container(f"Pod/{NAME}-test")
        assert container["image"].startswith(image)
        assert container["imagePullPolicy"] == ("Always" if "own" in image else "IfNotPresent")


def test_script_knows_every_tested_edge(up: Up) -> None:
    """Check that the script fails on an unknown edge, and without any edge."""
    strange = run(up, {"TEST_TELEX": "tcp://127.0.0.1:1"})
    assert strange.returncode == 1
    assert "telex at tcp://127.0.0.1:1: this script does not support its protocol" in strange.stdout
    nothing = run(up, {})
    assert (nothing.returncode, nothing.stdout.strip()) == (1, "no edge to test: no TEST_<EDGE> is set")


def test_missing_edge_fails_and_others_are_tested(up: Up) -> None:
    known = places(up)
    done = run(up, {**known, "TEST_TMQ": f"tcp://127.0.0.1:{free_port()}"})
    assert done.returncode == 1
    assert "Connection refused" in done.stdout.splitlines()[-1]
    assert done.stdout.count(": sent and received") == len(known) - 1


def test_starting_edge_is_waited_for(up: Up) -> None:
    """Check that the script waits for a starting edge, as after `helm install`."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT)],
        env={**environment(up), "TEST_TMQ": f"tcp://127.0.0.1:{port}", "START_S": "60"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert ": not ready: " in process.stdout.readline()
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(20)
        client, _ = server.accept()
        with client, up.connect() as edge:
            back = threading.Thread(target=pump, args=(edge, client))
            back.start()
            pump(client, edge)
            edge.shutdown(socket.SHUT_RDWR)
            back.join()
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output.count(": sent and received")) == (0, 1)


def pump(source: socket.socket, target: socket.socket) -> None:
    """Copy data until the source ends."""
    while data := source.recv(65536):
        target.sendall(data)


def test_wrong_answer_fails(up: Up) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        mute.settimeout(20)
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT),
                "TEST_TMQ": f"tcp://127.0.0.1:{mute.getsockname()[1]}",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        connection, _ = mute.accept()
        connection.close()
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "tmq at" in output
    assert "sent and received" not in output


def test_tls_edge_is_tested_with_tls_and_its_queue_is_removed(
    tmp_path: Path,
) -> None:
    """Check this with any authority, and with 16 bytes as limit, less than is sent (charts/penstock/README.md)."""
    listener = Authority.create(tmp_path).listener()
    prefix = "PENSTOCK_EDGES__TMQ__LISTENERS__DOCUMENT__TLS__"
    shell = Shell(tmp_path, {f"{prefix}{name.upper()}": str(path) for name, path in listener.items()})
    with running(shell, "--set", "edges.ring.clients.max_message_bytes=16") as up:
        known = places(up)
        assert run(up, {"TEST_TMQ": known["TEST_TMQ"]}).returncode == 1
        both = {"TEST_TMQ": known["TEST_TMQ"].replace("tcp:", "tls:"), "TEST_RING": known["TEST_RING"]}
        done = run(up, both)
        assert up.shell.run("queue", "list", "--json").objects == []
    by_name = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert (done.returncode, "sent and received" in by_name["ring"]) == (1, False), done
    assert "sent and received" in by_name["tmq"], done

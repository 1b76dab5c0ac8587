"""The addresses of edges of a `penstock up`, in the form that the chart's test expects."""

from __future__ import annotations

from tests.cli.shell import Up

LISTENERS = {
    "TMQ": ("tmq", "document"),
    "PUBSUB": ("pubsub", "text"),
    "RING": ("ring", "clients"),
    "RQP": ("rqp", "mca"),
}


def places(up: Up) -> dict[str, str]:
    edges = up.announcement["edges"]
    found = {name: edges[edge]["listeners"][listener] for name, (edge, listener) in LISTENERS.items()}
    return {f"TEST_{name}": f"tcp://{place['host']}:{place['port']}" for name, place in found.items()}

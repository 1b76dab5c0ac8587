"""Transfer messages between two releases connected by Peers."""

from __future__ import annotations

from typing import Any

import yaml

from tests.e2e.release import FULL, PEERS, QUEUES, RING_S, Release
from tests.e2e.scripted import run_script
from tests.e2e.steps import step
from tests.kubernetes.cluster import CommandFailed
from tests.operator.resource_documents import peer, queue
from tests.servers import eventually
from tests.tmq.process import ROOT

NEIGHBOUR = ROOT / "docs" / "examples" / "chart" / "neighbour.yaml"
PATIENCE_S = 90.0
GROUP = 1  # default group of a ring


def over_rqp(here: Release, there: Release) -> None:
    """Send messages from transmission queues `there` over both protocols to `orders` (number 7) and `asked` (key 8)."""
    peers = f"{FULL}-rqp-peers.{here.namespace}.svc"
    there.apply(
        peer("mca", "rqp-mca", peers),
        peer("cast", "rqp-cast", peers),
        queue("by-mca", remote={"protocol": "rqp-mca", "queueId": 7, "peers": ["mca"]}),
        queue("by-cast", remote={"protocol": "rqp-cast", "key": 8, "peers": ["cast"]}),
    )
    there.wait_ready(f"{QUEUES},{PEERS}")
    for name, goal in (("by-mca", "orders"), ("by-cast", "asked")):
        with step(f"a message over {name}"):
            there.penstock("put", name, name)
            eventually(lambda: taken(here, goal) == name, PATIENCE_S)  # noqa: B023


def neighbour(of: Release) -> dict[str, Any]:
    """Return the values with which a release discovers the edges of another one (docs/kubernetes.md, Discovery)."""
    values: dict[str, Any] = yaml.safe_load(NEIGHBOUR.read_text().replace("yard", of.namespace))
    return values


def over_links(here: Release, there: Release) -> None:
    """Check that messages go both ways over links though only one side discovers the other (docs/pubsub.md)."""
    with step("the other release found"):
        name = f"{FULL}-pubsub.{here.namespace}.text"
        eventually(lambda: name in there.penstock("peer", "list", "--json"), PATIENCE_S)
    here.apply(queue("news", bindings={"text": {"subscribe": ["news"]}}))
    there.apply(queue("news", bindings={"text": {"subscribe": ["olds"]}}))
    here.wait_ready(QUEUES)
    there.wait_ready(QUEUES)
    for sender, receiver, tag in ((there, here, "news"), (here, there, "olds")):
        with step(f"a SEND of {tag} over a link"):
            send(sender, tag, f"some {tag}")
            eventually(lambda: taken(receiver, "news") == f"some {tag}", PATIENCE_S)  # noqa: B023


def over_the_ring(here: Release, there: Release) -> None:
    """Join both releases in one ring of two stores, and send messages from an outbox there to the inbox here."""
    for release, other in ((here, there), (there, here)):
        release.apply(peer("ring", "ring", f"{FULL}-ring-peers.{other.namespace}.svc"))
    here.apply(queue("inbox", bindings={"ring": {"inbox": GROUP}}))
    there.apply(queue("outbox", bindings={"ring": {"outbox": GROUP}}))
    here.wait_ready(f"{QUEUES},{PEERS}")
    there.wait_ready(f"{QUEUES},{PEERS}")
    with step("one ring of two releases"):
        for each in (here, there):
            eventually(each.ring, PATIENCE_S, until=lambda ring: ring.is_shared)
    with step("a message from an outbox to an inbox"):
        there.penstock("put", "outbox", "around")
        eventually(lambda: taken(here, "inbox") == "around", PATIENCE_S)


def apart(here: Release) -> None:
    """Delete the Peer of the ring once the other release is gone, and wait until the ring is whole again."""
    here.kubectl("delete", PEERS, "ring", "--timeout=20s")
    here.kubectl("delete", QUEUES, "news", "inbox", "--timeout=20s")
    with step("a ring of its own again"):
        eventually(here.ring, RING_S, until=lambda ring: ring.is_whole)


def send(release: Release, tag: str, body: str) -> None:
    """Send a message with the text protocol. Raise CommandFailed if that fails."""
    run_script(release, "send.py", f"{FULL}-pubsub:7171", tag, body)


def taken(release: Release, name: str) -> str:
    """Take a message from the queue; return an empty string if it is empty."""
    try:
        return release.penstock("get", name)
    except CommandFailed:
        return ""


def sent_and_taken(release: Release, tag: str, name: str) -> bool:
    """Send a message with the tag, and return whether the queue has received it."""
    send(release, tag, tag)
    return taken(release, name) == tag

"""Check that every refusal reason of the text service is documented for readers of its counters."""

from __future__ import annotations

import re
from pathlib import Path

from protos.pubsub import Reason
from services.kit.net.refusals import Refusal

ROOT = Path(__file__).parents[2]
SAID = re.compile(r"(?:refuse|PeerError)\(\"([a-z_]+)\"")
OF_CLIENTS = {"bad_reply"}  # labels that Penstock's own client gives to a server's errors


def labels_used_in(folder: str) -> set[str]:
    found = {name for path in (ROOT / folder).rglob("*.py") for name in SAID.findall(path.read_text())}
    assert found
    return found - OF_CLIENTS


def labels_in(text: str) -> set[str]:
    return set(re.findall(r"`([a-z0-9_]+)`", text))


def test_each_is_on_the_page_of_the_counters() -> None:
    page = (ROOT / "docs/pubsub.md").read_text().partition("### Reasons of refusals")[2]
    reasons = {reason.label for reason in Reason} | {str(reason) for reason in Refusal}
    assert reasons | labels_used_in("protos/pubsub") | labels_used_in("services/pubsub") <= labels_in(page)


def test_each_is_in_the_protocol() -> None:
    """Check that the protocol lists each reason (2.4, 4.7)."""
    spec = (ROOT / "protos/pubsub.md").read_text()
    of_clients = spec.partition("\n2.4 ")[2].partition("\n2.5 ")[0]
    assert {reason.label for reason in Reason} | {"too_many_subscriptions"} <= labels_in(of_clients)
    assert labels_used_in("protos/pubsub") | labels_used_in("services/pubsub") <= labels_in(spec)

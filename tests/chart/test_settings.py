"""Settings of an edge that the chart also sets: both apply (or are rejected: refusals.yaml)."""

from __future__ import annotations

from typing import Any

from tests.chart.chart import NAME, Values, nested, render
from tests.chart.conftest import Read

SECRET = nested("edges.pubsub.tls.secretName", "c")
TEXT = "edges.pubsub.settings.listeners.text"


def tls_of(*values: Values) -> Any:
    return render(*values).file("pubsub")["edges"]["pubsub"]["listeners"]["text"]["tls"]


def test_secret_certificate_keeps_other_tls_settings(read: Read) -> None:
    """Check that client CA and minimum version stay with a certificate from a Secret (docs/chart.md, "TLS")."""
    values = nested(f"{TEXT}.tls", {"client_ca": "/etc/more/ca.crt", "min_version": "1.3"})
    files = {"certificate": "/etc/penstock/tls/tls.crt", "key": "/etc/penstock/tls/tls.key"}
    assert tls_of(SECRET) == files
    assert tls_of(SECRET, values) == {**files, "client_ca": "/etc/more/ca.crt", "min_version": "1.3"}
    _, own = read(render(SECRET, values), "pubsub")
    assert own.listeners["text"].tls.min_version == "1.3"
    of_the_secret = nested("edges.pubsub.tls.clientCA", True)
    newer = nested(f"{TEXT}.tls.min_version", "1.3")
    assert tls_of(SECRET, of_the_secret, newer) == {
        **files,
        "client_ca": "/etc/penstock/tls/ca.crt",
        "min_version": "1.3",
    }


def test_other_listeners_keep_their_own_tls() -> None:
    own = {"certificate": "/etc/more/tls.crt", "key": "/etc/more/tls.key"}
    link = {
        "ports": {"text-link": {"enabled": True}},
        "tls": {"secretName": "c", "listeners": ["link"]},
        "settings": {"listeners": {"text": {"tls": own}}},
    }
    assert tls_of({"edges": {"pubsub": link}}) == own


def test_repeating_the_charts_settings_is_allowed() -> None:
    values = {"settings": {"listeners": {"text": {"host": "0.0.0.0", "port": 7171}, "link": False}}}
    rendered = render({"edges": {"pubsub": values}})
    assert rendered[f"ConfigMap/{NAME}-pubsub"] == render()[f"ConfigMap/{NAME}-pubsub"]

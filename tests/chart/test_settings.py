"""Settings of an edge beside what the chart writes there itself: both hold, or the one that would not is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chart.chart import NAME, Values, must_refuse, nested, render, together
from tests.chart.test_edges import as_the_edge_reads_it

SECRET = nested("edges.pubsub.tls.secretName", "c")
TEXT = "edges.pubsub.settings.listeners.text"


def tls_of(*values: Values) -> Any:
    return render(*values).file("pubsub")["edges"]["pubsub"]["listeners"]["text"]["tls"]


def test_a_certificate_of_a_secret_leaves_alone_what_else_is_said_of_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/chart.md, "TLS": the authority of clients, and the least version."""
    said = nested(f"{TEXT}.tls", {"client_ca": "/etc/more/ca.crt", "min_version": "1.3"})
    files = {"certificate": "/etc/penstock/tls/tls.crt", "key": "/etc/penstock/tls/tls.key"}
    assert tls_of(SECRET) == files
    assert tls_of(SECRET, said) == {**files, "client_ca": "/etc/more/ca.crt", "min_version": "1.3"}
    _, own = as_the_edge_reads_it(render(SECRET, said), "pubsub", tmp_path, monkeypatch)
    assert own.listeners["text"].tls.min_version == "1.3"
    of_the_secret = nested("edges.pubsub.tls.clientCA", True)
    newer = nested(f"{TEXT}.tls.min_version", "1.3")
    assert tls_of(SECRET, of_the_secret, newer) == {
        **files,
        "client_ca": "/etc/penstock/tls/ca.crt",
        "min_version": "1.3",
    }


def test_listeners_that_are_not_named_keep_their_own_tls() -> None:
    own = {"certificate": "/etc/more/tls.crt", "key": "/etc/more/tls.key"}
    link = {
        "ports": {"text-link": {"enabled": True}},
        "tls": {"secretName": "c", "listeners": ["link"]},
        "settings": {"listeners": {"text": {"tls": own}}},
    }
    assert tls_of({"edges": {"pubsub": link}}) == own


def test_what_the_chart_says_itself_may_be_said_again() -> None:
    values = {"settings": {"listeners": {"text": {"host": "0.0.0.0", "port": 7171}, "link": False}}}
    rendered = render({"edges": {"pubsub": values}})
    assert rendered[f"ConfigMap/{NAME}-pubsub"] == render()[f"ConfigMap/{NAME}-pubsub"]


OVERRULED: dict[str, tuple[Values, str]] = {
    "a certificate of another place": (
        together(SECRET, nested(f"{TEXT}.tls.certificate", "/etc/more/tls.crt")),
        "edges.pubsub.settings.listeners.text.tls.certificate: edges.pubsub.tls says /etc/penstock/tls/tls.crt: leave "
        "one of the two out, or name the others in edges.pubsub.tls.listeners",
    ),
    "another authority of clients than the Secret's": (
        together(SECRET, nested("edges.pubsub.tls.clientCA", True), nested(f"{TEXT}.tls.client_ca", "/a")),
        "edges.pubsub.settings.listeners.text.tls.client_ca: edges.pubsub.tls says /etc/penstock/tls/ca.crt",
    ),
    "no TLS, and a certificate": (
        together(SECRET, nested(f"{TEXT}.tls", False)),
        "edges.pubsub.settings.listeners.text.tls: edges.pubsub.tls.secretName gives it a certificate",
    ),
    "another address": (
        nested(f"{TEXT}.host", "127.0.0.1"),
        "edges.pubsub.settings.listeners.text.host: the chart has all listeners on bindAddress, 0.0.0.0: leave it out, "
        "or say edges.pubsub.bindAddress",
    ),
    "a listener that is closed and open": (
        nested("edges.tmq.settings.listeners.reference", False),
        "edges.tmq.settings.listeners.reference: it is open by edges.tmq.ports.tmq-reference: say enabled: false there",
    ),
    "a port that is open, of what is off": (
        nested("edges.rqp.settings.cast.receives", False),
        "edges.rqp.settings.cast.receives: edges.rqp.ports.rqp-cast says true: say it there alone",
    ),
    "a port that is closed, of what is on": (
        nested(
            "edges.rqp", {"settings": {"cast": {"receives": True}}, "ports": {"rqp-cast": {"enabled": False}}}
        ),
        "edges.rqp.settings.cast.receives: edges.rqp.ports.rqp-cast says false: say it there alone",
    ),
}


@pytest.mark.parametrize("what", OVERRULED)
def test_what_would_be_overruled_is_refused(what: str) -> None:
    must_refuse(*OVERRULED[what])

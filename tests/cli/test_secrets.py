"""Test that no command prints secrets in URLs."""

from __future__ import annotations

import re

import pytest

from tests.cli.shell import Shell

SECRET = "hunter2"
BAD = [
    f"redis://edge:{SECRET}/def+g=@h",
    f"redis://edge:{SECRET}#x@h",
    f"redis://ann@corp:{SECRET}@h",
    f"redis://{SECRET}@h",
    f"redis://h/{SECRET}",
    f"redis://h?{SECRET}",
    f"redis://h?password={SECRET}",
    f"edge:{SECRET}@h",
]


@pytest.mark.parametrize("url", BAD)
def test_bad_url_is_refused_without_showing_it(alone: Shell, url: str) -> None:
    for given in (
        alone.run("queue", "list", "--set", f"store.url={url}", code=2).err,
        alone.run("config", url, code=2).err if re.search("://.*[@?]", url) else "",
    ):
        assert SECRET not in given
        assert given.count("\n") <= 1
    output = alone.run("doctor", code=2, REDIS_URL=url).err
    assert re.match(r"penstock: bad_settings: store.url: .* \(from REDIS_URL\)\n$", output)
    assert SECRET not in output


def test_config_shows_a_url_without_its_secrets(alone: Shell) -> None:
    url = f"redis+sentinel://e:{SECRET}@h:26379/m?sentinel_password={SECRET}"
    assert "redis+sentinel://***@h:26379/m?***" in alone.run("config", "--store", url).text
    shown = alone.run("config", "--set", f"tracing.endpoint=https://{SECRET}@h/otlp?key={SECRET}").text
    assert "https://***@h/otlp?***" in shown


def test_store_outage_is_logged_without_secrets(alone: Shell) -> None:
    url = f"redis+sentinel://u:{SECRET}@127.0.0.1:1/m?sentinel_password={SECRET}"
    result = alone.run("queue", "list", "--store", url, "--timeout", "0.2", code=3, PENSTOCK_DEBUG="1")
    assert SECRET not in result.err + result.text
    assert "no Sentinel knows" in result.err


ADDRESS = f"edge:{SECRET}@h:1"
LISTENER = "edges.pubsub.listeners.text"
REFUSED = [
    ("serve", "pubsub", "--neighbour", ADDRESS),
    ("serve", "pubsub", "--neighbour", f"{SECRET}@h:1"),
    ("serve", "pubsub", "--set", f"{LISTENER}.allow={ADDRESS}"),
    ("serve", "pubsub", "--set", f"{LISTENER}.host={ADDRESS}"),
    ("serve", "ring", "--set", f"edges.ring.node.beacon_targets={SECRET}@h"),
    ("serve", "rqp", "--set", f'edges.rqp.mca.peers={{x: {{addresses: ["{ADDRESS}"]}}}}'),
    ("serve", "rqp", "--set", f'edges.rqp.cast.peers={{x: {{addresses: ["{ADDRESS}"]}}}}'),
    ("console", "--set", f"console.proxy.networks={ADDRESS}"),
    ("console", "--set", f"health.host={ADDRESS}"),
    ("config", ADDRESS),
]


@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_errors_never_show_a_login(alone: Shell, arguments: tuple[str, ...]) -> None:
    output = alone.run(*arguments, code=2, REDIS_URL="redis://127.0.0.1:1").err
    assert SECRET not in output
    assert "***@h" in output


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("endpoint", "collector:4318"),
        ("endpoint", f"redis://{SECRET}@h"),
        ("traces_endpoint", "ftp://collector"),
    ],
)
def test_bad_collector_url_is_refused_with_an_example(alone: Shell, field: str, value: str) -> None:
    output = alone.fails("config", "--set", f"tracing.{field}={value}", code=2)
    assert output.startswith(f"bad_settings: tracing.{field}: ")
    assert "as http://collector:4318" in output.replace("as in ", "as ")
    assert SECRET not in output

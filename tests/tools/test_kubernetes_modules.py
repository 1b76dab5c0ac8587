"""Our Go modules are what `make kubernetes-lock` would write; and what of Kubernetes is missing is said in one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.cache import NotBuilt
from tools.kubernetes.build import build
from tools.kubernetes.programs import (
    GROUPS,
    KUBERNETES,
    MODULE_PATH,
    MODULES,
    PROGRAMS,
    Module,
    find,
    modules,
)

MODULE_LINE = re.compile(r"(\S+) (v\S+?)(?:/go\.mod)? h1:[\w+/]{43}=")  # of go.sum


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)


def pinned(module: Module) -> str:
    return (module.folder / "go.mod").read_text("utf-8")


def test_every_folder_is_a_module_that_something_is_built_of() -> None:
    assert {path.name for path in MODULES.iterdir()} == {module.name for module in modules()}


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_versions_and_programs_are_those_that_are_said(module: Module) -> None:
    text = pinned(module)
    for path, version in module.requires.items():
        assert re.search(
            rf"^\s*(require )?{re.escape(path)} v{re.escape(version)}( //.*)?$", text, re.MULTILINE
        )
    packages = {program.package for program in PROGRAMS.values() if program.module is module}
    others = {package for package in packages if not package.startswith(MODULE_PATH)}
    assert {
        package for package in others if not re.search(rf"^\s*(tool )?{package}$", text, re.MULTILINE)
    } == set()


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_parts_of_kubernetes_are_of_its_own_version(module: Module) -> None:
    version = module.requires.get(KUBERNETES, "")
    replaced = re.findall(r"^\s*(?:replace )?(\S+) => (\S+) (\S+)$", pinned(module), re.MULTILINE)
    assert bool(replaced) == bool(version)
    for old, new, published in replaced:
        assert (new, published) == (old, f"v0.{version.partition('.')[2]}")


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_sums_are_of_modules_and_of_nothing_else(module: Module) -> None:
    lines = (module.folder / "go.sum").read_text("utf-8").splitlines()
    assert lines
    assert [line for line in lines if not MODULE_LINE.fullmatch(line)] == []


def test_a_program_that_was_not_built_says_which_target_builds_it() -> None:
    with pytest.raises(NotBuilt, match=r"^kube-apiserver [\d.]+ is missing; `make kubernetes` builds it$"):
        find("kube-apiserver")
    with pytest.raises(NotBuilt, match=r"^kubelet [\d.]+ is missing; `make kubernetes-node` builds it$"):
        find("kubelet")


def test_a_program_of_the_system_says_how_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotBuilt, match=r"^no-such-program is missing; tools/system kubernetes installs it"):
        find("no-such-program")


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


def test_what_is_given_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    for program in GROUPS["apiserver"]:
        if program.kept.name in ("helm", "kubeconform"):
            program.kept.program.parent.mkdir()
            program.kept.program.touch()
    said: list[str] = []
    build("apiserver", said.append)
    assert said == []

"""Test that the project's Go modules are up to date with `make kubernetes-lock`."""

from __future__ import annotations

import re

import pytest

from tools.kubernetes.programs import (
    KUBERNETES,
    MODULE_PATH,
    MODULES,
    PROGRAMS,
    Module,
    modules,
)

MODULE_LINE = re.compile(r"(\S+) (v\S+?)(?:/go\.mod)? h1:[\w+/]{43}=")  # of go.sum


def pinned(module: Module) -> str:
    return (module.folder / "go.mod").read_text("utf-8")


def test_every_folder_is_a_module_that_something_is_built_of() -> None:
    assert {path.name for path in MODULES.iterdir()} == {module.name for module in modules()}


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_go_modules_pin_the_versions_and_programs(module: Module) -> None:
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

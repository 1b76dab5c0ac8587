"""python -m tools.kubernetes.lock: write go.mod and go.sum of the Go modules from `programs.py`.

It needs the network. Builds verify each module against go.sum.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.cache import NotBuilt
from tools.go import find_go, run_go
from tools.kubernetes.programs import KUBERNETES, MODULE_PATH, PROGRAMS, Module, modules

OLDEST_GO = "1.24.0"  # supports `tool`; `go mod tidy` raises the line to the dependencies' requirement
WHY_REPLACED = """\
// k8s.io/kubernetes requires its parts as v0.0.0 and replaces them by folders of its own repository. Go ignores
// `replace` in dependencies, so these lines name the published parts: v1.X.Y of it is v0.X.Y of each."""


def lock(module: Module) -> None:
    """Write go.mod and go.sum of the module. Raises NotBuilt."""
    go = find_go()
    module.folder.mkdir(exist_ok=True)
    (module.folder / "go.sum").unlink(missing_ok=True)
    (module.folder / "go.mod").write_text("\n".join(_lines(go, module)) + "\n", "utf-8")
    run_go(go, ["mod", "tidy"], module.folder)


def _lines(go: str, module: Module) -> Iterator[str]:
    yield "// Written by `make kubernetes-lock` from tools/kubernetes/programs.py: raise versions there."
    yield f"module {MODULE_PATH}{module.name}"
    yield f"go {OLDEST_GO}"
    yield from ("tool (", *(f"\t{package}" for package in _tools(module)), ")")
    for path, version in module.requires.items():
        yield f"require {path} v{version}"
    if version := module.requires.get(KUBERNETES, ""):
        yield WHY_REPLACED
        yield "replace ("
        yield from (f"\t{part} => {part} v0.{version.partition('.')[2]}" for part in _parts(go, version))
        yield ")"


def _tools(module: Module) -> list[str]:
    """Return `tool` lines for the programs: `go mod tidy` then keeps their dependencies."""
    packages = [program.package for program in PROGRAMS.values() if program.module is module]
    return [package for package in packages if not package.startswith(MODULE_PATH)]


def _parts(go: str, version: str) -> list[str]:
    """Return the modules that k8s.io/kubernetes replaces by folders of its own tree."""
    fetched = json.loads(run_go(go, ["mod", "download", "-json", f"{KUBERNETES}@v{version}"]))
    listed = json.loads(run_go(go, ["mod", "edit", "-json", str(Path(fetched["GoMod"]))]))
    replaced = (each for each in listed["Replace"] if each["New"]["Path"].startswith("./staging/"))
    return [each["Old"]["Path"] for each in replaced]


if __name__ == "__main__":
    try:
        for each in modules():
            lock(each)
    except NotBuilt as error:
        sys.exit(f"penstock: {error}")

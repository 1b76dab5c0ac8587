"""Copy third-party files of the console's page out of their npm packages: `python -m tools.vendor`.

The page has no build step: each file is published by its package, with imports rewritten to relative names, because
the page's content security policy forbids an inline import map. Versions and hashes are written to `vendored.json`
beside the files, together with the licences; tests check the files against it without a network.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.cache import NotBuilt
from tools.command import run

ROOT = Path(__file__).parents[1]
RECORD = "vendored.json"
PATIENCE_S = 120.0
IMPORTS = {  # package names → local paths
    "preact": "./preact.js",
    "preact/hooks": "./preact-hooks.js",
    "@preact/signals-core": "./signals-core.js",
}
SPECIFIER = re.compile(r'(?<=from)(["\'])([^"\']+)\1')
SOURCE_MAP = re.compile(r"\n//# sourceMappingURL=\S+\s*$")  # source maps are not copied


@dataclass(frozen=True, slots=True)
class Package:
    """A package of npm. files: path in the package to local path; script: the name that a plain script declares."""

    name: str
    version: str
    files: Mapping[str, str]
    licence: str = "LICENSE"
    script: str = ""

    @property
    def licence_here(self) -> str:
        return f"LICENSE.{self.name.strip('@').replace('/', '-')}.txt"


PAGE = (
    Package("preact", "11.2.0", {"dist/preact.mjs": "preact.js", "hooks/dist/hooks.mjs": "preact-hooks.js"}),
    Package("htm", "3.1.1", {"dist/htm.mjs": "htm.js"}),
    Package("@preact/signals", "2.11.4", {"dist/signals.mjs": "signals.js"}),
    Package("@preact/signals-core", "1.14.5", {"dist/signals-core.mjs": "signals-core.js"}),
    # its module is three times as large, as only its script is minified
    Package(
        "uplot",
        "1.6.32",
        {"dist/uPlot.iife.min.js": "uplot.js", "dist/uPlot.min.css": "uplot.css"},
        script="uPlot",
    ),
    Package(
        "@fontsource/ibm-plex-sans",
        "5.3.0",
        {f"files/ibm-plex-sans-latin-{w}-normal.woff2": f"plex-sans-{w}.woff2" for w in (400, 600)},
    ),
)
TESTS = (Package("axe-core", "4.14.1", {"axe.min.js": "axe.js"}),)
PLACES = {
    ROOT / "services/console/page/vendor": PAGE,
    ROOT / "tests/console/page/vendor": TESTS,  # never shipped
}


def as_module(text: str) -> str:
    """Rewrite the imports of a module to local paths. Raises KeyError for an unknown package."""
    return SPECIFIER.sub(lambda found: f'"{IMPORTS[found[2]]}"', SOURCE_MAP.sub("\n", text))


def exporting(text: str, name: str) -> str:
    """Turn a plain script into a module that exports the name."""
    return f"{text.rstrip()}\nexport default {name};\n"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def take(package: Package, place: Path) -> dict[str, Any]:
    """Write the files of a package and return its record. Raises NotBuilt, KeyError."""
    with tempfile.TemporaryDirectory() as folder:
        said = run(
            "npm pack", ["npm", "pack", "--json", f"{package.name}@{package.version}"], PATIENCE_S, cwd=folder
        )
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as members:
            files = {
                here: _read(members, there, here, package.script) for there, here in package.files.items()
            }
            files[package.licence_here] = _read(members, package.licence, package.licence_here)
    for name, data in files.items():
        (place / name).write_bytes(data)
    (entry,) = _packages(json.loads(said))
    return {
        "version": package.version,
        "integrity": entry["integrity"],  # of the archive, as in npm's lock files
        "files": {name: sha256(data) for name, data in sorted(files.items())},
    }


def _packages(said: Any) -> list[dict[str, Any]]:
    """Return the list of packages from the output of npm: some versions print a mapping by name."""
    return list(said.values()) if isinstance(said, dict) else said


def _read(members: tarfile.TarFile, there: str, here: str, script: str = "") -> bytes:
    file = members.extractfile(f"package/{there}")
    assert file is not None, there
    data = file.read()
    if there.endswith(".mjs"):
        return as_module(data.decode()).encode()
    return exporting(data.decode(), script).encode() if script and here.endswith(".js") else data


def main() -> int:
    for place, packages in PLACES.items():
        place.mkdir(parents=True, exist_ok=True)
        for old in place.iterdir():
            old.unlink()
        try:
            record = {package.name: take(package, place) for package in packages}
        except (NotBuilt, KeyError) as error:
            print(f"penstock: {error}", file=sys.stderr)
            return 1
        (place / RECORD).write_text(json.dumps(record, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""python -m tools.slow_tests REPORTS: print the tests that are too slow for `make check`.

REPORTS is a folder of JUnit XML of a whole run (`make unit JUNIT=FOLDER`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

SLOW_S = 1.5  # with three other test processes
OTHER_SERVERS = {  # folders whose tests need more servers than Redis or Valkey
    "analytics": "Java, a browser, a store of objects",
    "benchmarks": "the peers of a measurement",
    "chart": "helm, promtool, an API server",
    "console/page": "a browser",
    "docs": "penstock up, a browser, an API server",
    "e2e": "a node",
    "faults": "systems of many processes",
    "images": "images",
    "kubernetes": "an API server",
    "monitoring": "Prometheus",
    "operator": "an API server",
    "tools": "helm",
    "tracing": "a collector",
}


def main(reports: str) -> int:
    slowest: dict[str, float] = {}
    for path in Path(reports).glob("*.xml"):
        for case in ElementTree.parse(path).iter("testcase"):
            name = _name(case.get("classname", ""), case.get("name", ""))
            slowest[name] = max(slowest.get(name, 0.0), float(case.get("time", 0)))
    print(
        "# What `make check` leaves out: `make slow-tests` writes this list. Folders, and what their tests need:"
    )
    folders = {f"tests/{folder}/": need for folder, need in OTHER_SERVERS.items()}
    for folder, need in folders.items():
        print(f"{folder}  # {need}")
    print(f"# tests of the others that took more than {SLOW_S} s:")
    slow = [name for name, seconds in slowest.items() if seconds > SLOW_S]
    for name in sorted(name for name in slow if not name.startswith(tuple(folders))):
        print(name)
    return 0


def _name(classname: str, name: str) -> str:
    """Return the id for pytest, without parameters: tests.store.test_x.TestY is tests/store/test_x.py::TestY."""
    parts = classname.split(".")
    for number in range(len(parts), 0, -1):
        file = Path(*parts[:number]).with_suffix(".py")
        if file.exists():
            return "::".join([str(file), *parts[number:], name.partition("[")[0]])
    return f"{classname}::{name}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Fail if a test was skipped that LIST does not name, or if no test ran: python skips.py REPORTS LIST.

REPORTS is a folder with at least one JUnit XML file. LIST has one test per line, `path::name  reason`; `#` begins a
comment.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree


def allowed(path: Path) -> dict[str, str]:
    lines = (line.split("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    named = {}
    for line in filter(None, lines):
        name, _, reason = line.partition("  ")
        if not reason.strip():
            sys.exit(f"{path}: {name!r} needs a reason, two spaces after its name")
        named[name] = reason.strip()
    return named


def main(reports: str, names: str) -> int:
    runs = [list(ElementTree.parse(path).iter("testcase")) for path in Path(reports).glob("*.xml")]
    cases = [case for run in runs for case in run]
    skipped = [
        f"{case.get('classname')}::{case.get('name')}" for case in cases if case.find("skipped") is not None
    ]
    known = allowed(Path(names))
    unknown = [name for name in skipped if name not in known]
    for name in unknown:
        print(f"skipped, and not listed with a reason in {names}: {name}")
    if not all(runs) or not runs:
        print("no test ran")
    print(f"{len(cases) - len(skipped)} passed, {len(unknown)} failed, {len(skipped) - len(unknown)} skipped")
    return 1 if unknown or not all(runs) or not runs else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

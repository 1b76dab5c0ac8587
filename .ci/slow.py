"""Print the slowest tests; fail if one was too slow that LIST does not name: python slow.py REPORTS LIST.

REPORTS and LIST are as in skips.py, but names may omit the parameters of tests. LIST names tests that start Java or
take more than 30 s on an idle machine. The limit is 120 s, since tests run concurrently here, and since the same run
has taken 31 minutes on one machine and 59 on another.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

from skips import allowed

SHOWN = 30
ALLOWED_S = 120.0


def main(reports: str, names: str) -> int:
    cases = [
        case for path in Path(reports).glob("*.xml") for case in ElementTree.parse(path).iter("testcase")
    ]
    timed = [(float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}") for case in cases]
    timed.sort(reverse=True)
    print(f"the {SHOWN} slowest of {len(timed)} tests, in seconds:")
    for seconds, name in timed[:SHOWN]:
        print(f"{seconds:7.1f}  {name}")
    known = allowed(Path(names))
    slow = [
        name
        for seconds, name in timed
        if seconds > ALLOWED_S and name not in known and name.partition("[")[0] not in known
    ]
    for name in slow:
        print(
            f"took more than {ALLOWED_S:.0f} s: make it faster, or list it with a reason in {names}: {name}"
        )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

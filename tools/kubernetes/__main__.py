"""python -m tools.kubernetes clients|apiserver|objects|collector|node: build missing programs, print their paths."""

import sys

from tools.cache import NotBuilt
from tools.kubernetes.build import build
from tools.kubernetes.programs import ENVTEST, GROUPS, find


def main(group: str) -> None:
    build(group, lambda text: print(text, flush=True))
    others = ENVTEST if group == "apiserver" else ()
    for name in dict.fromkeys([*others, *(program.kept.name for program in GROUPS[group])]):
        print(f"{name}\t{find(name)}".expandtabs(28))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in GROUPS:
        sys.exit(f"python -m tools.kubernetes {'|'.join(GROUPS)}")
    try:
        main(sys.argv[1])
    except NotBuilt as error:
        sys.exit(f"penstock: {error}")

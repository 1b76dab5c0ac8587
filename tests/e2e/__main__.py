"""Run a cluster like that of the tests, for inspection: python -m tests.e2e images | up | run COMMAND ... | down.

images  build the images of this tree
up      start a cluster with these images and keep it until Ctrl-C or `down`; --bare: without images
run     run a command on its network: kubectl, helm, or any program that connects to Services and pods
down    end clusters that `up` of this tree started, and remove leftovers of dead ones
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.e2e.images import Images, built, pause
from tests.e2e.node.node import running
from tests.e2e.node.place import clear_away, running_clusters
from tests.e2e.steps import lines as steps
from tests.servers import eventually
from tools.cache import NotBuilt, cache_folder
from tools.images.build import ROOT

END_S = 60.0


def up(images: Images | None) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with running(pause(), images.all if images else []) as node:
        node.place.record(node.cluster.kubeconfig, ROOT)
        print("\n".join(steps()), flush=True)
        print(f"ready: {node.place.folder}; python -m tests.e2e run kubectl get nodes", flush=True)
        signal.pause()


def run(folder: Path | None, command: list[str]) -> int:
    """Run a command in the named cluster, or the youngest; return its exit status."""
    found = running_clusters(ROOT)
    if not found or (folder and folder not in found):
        sys.exit("no such cluster runs: python -m tests.e2e up")
    state = found[folder or next(iter(found))]
    programs = ":".join(str(path) for path in cache_folder().glob("*-*") if path.is_dir())
    environment = {
        **os.environ,
        "KUBECONFIG": state["kubeconfig"],
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    return subprocess.run(
        ["nsenter", f"--net=/proc/{state['pid']}/ns/net", *command], env=environment
    ).returncode


def down() -> None:
    for folder, state in running_clusters(ROOT).items():
        os.kill(state["pid"], signal.SIGTERM)
        eventually(lambda folder=folder: not folder.exists(), END_S)  # type: ignore[misc]
        print(f"ended {folder}")
    for left in clear_away():
        print(f"cleared away {left}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("images")
    commands.add_parser("up").add_argument("--bare", action="store_true", help="without images of this tree")
    running_in = commands.add_parser("run")
    running_in.add_argument("--in", dest="folder", type=Path, help="which, other than the youngest")
    running_in.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    commands.add_parser("down")
    options = parser.parse_args()
    if options.command == "run":
        return run(options.folder, options.words)
    if options.command == "images":
        built()
        print("\n".join(steps()))
    elif options.command == "down":
        down()
    else:
        up(None if options.bare else built())
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NotBuilt as error:
        sys.exit(f"penstock: {error}")
    except KeyboardInterrupt:
        sys.exit(0)

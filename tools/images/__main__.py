"""python -m tools.images [TARGET ...]: build images of the Dockerfile; `--help` lists the options."""

from __future__ import annotations

import argparse
import sys
import time

from tools.cache import NotBuilt
from tools.images.base import base
from tools.images.build import BUILDERS, PREFIX, build, find_builder, image, push, targets


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.images", description="build images of the Dockerfile"
    )
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"any of {', '.join(targets())}; default: all"
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--base", default="", help="base image; default: that of the Dockerfile")
    chosen.add_argument("--own-base", action="store_true", help="use a base image made of Debian packages")
    chosen.add_argument("--print-base", action="store_true", help="make that base image and print its name")
    parser.add_argument(
        "--builder", choices=BUILDERS, default="", help="default: the first that is available"
    )
    parser.add_argument("--prefix", default=PREFIX, help="prefix of the images' names (default: %(default)s)")
    parser.add_argument("--tag", default="", help="tag of the images; default: the project's version")
    parser.add_argument("--source", default="", help="URL of the published sources, for a label")
    parser.add_argument("--push", action="store_true", help="push the images to the registry in the prefix")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(targets()):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    return options


def main(options: argparse.Namespace) -> None:
    """Build the images, and push them if requested. Raises NotBuilt."""
    if options.print_base:
        print(base())
        return
    on = base() if options.own_base else options.base
    # a Docker engine on this machine does not have a base that buildah made
    builder = options.builder or ("buildah" if options.own_base else find_builder())
    for target in options.targets or targets():
        begin = time.monotonic()
        wanted = image(target, options.prefix, options.tag, on, options.source)
        build(wanted, builder)
        if options.push:
            push(wanted.name, builder)
        print(
            f"{wanted.name} {'built and pushed' if options.push else 'built'} in {time.monotonic() - begin:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    try:
        main(_options())
    except NotBuilt as error:
        sys.exit(f"penstock: {error}")

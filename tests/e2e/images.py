"""Images of the tests: built from this tree, or pulled from a registry by a given cluster."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.e2e.steps import step
from tools.cache import cache_folder
from tools.images import build as ours
from tools.images.base import base
from tools.images.build import ROOT, Image, build, image, tag_as, version
from tools.images.storage import buildah
from tools.kubernetes.programs import PAUSE_VERSION, find

# keeps these images apart from those of other trees on this host and from those of `make images`
TREE = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]


def prefix(tree: str) -> str:
    return f"{ours.PREFIX}test-{tree}/"


PREFIX = prefix(TREE)
FOLDERS = Path(__file__).parent / "images"
TARGETS = ("edge", "operator", "console", "analytics")
# targets that tests upgrade, to the same content under another tag
UPGRADED = ("edge", "operator", "console")
NEXT = "-next"  # suffix of the tag to which tests upgrade
PAUSE = f"{PREFIX}penstock-test-pause:{PAUSE_VERSION}"
REDIS = f"{PREFIX}penstock-test-redis:1"


@dataclass(frozen=True)
class Images:
    """Image names: `images.of("edge")` for pods; with `tag=images.next_tag` another name for the same content."""

    prefix: str
    tag: str
    redis: str  # has redis-server and redis-sentinel

    @property
    def next_tag(self) -> str:
        return f"{self.tag}{NEXT}"

    def of(self, target: str, tag: str = "") -> str:
        return f"{self.repository(target)}:{tag or self.tag}"

    def repository(self, target: str) -> str:
        """Return the name without the tag, for values of the chart."""
        return f"{self.prefix}penstock-{target}"

    @property
    def all(self) -> list[str]:
        names = [self.of(target) for target in TARGETS]
        return [*names, *(self.of(target, self.next_tag) for target in UPGRADED), self.redis]


def given() -> Images:
    """Return images by PENSTOCK_E2E_IMAGES (a final `/` is optional), PENSTOCK_E2E_TAG and PENSTOCK_E2E_REDIS."""
    tag = os.environ.get("PENSTOCK_E2E_TAG", version())
    redis = os.environ.get("PENSTOCK_E2E_REDIS", "docker.io/library/redis:7.2")
    return Images(os.environ["PENSTOCK_E2E_IMAGES"].rstrip("/") + "/", tag, redis)


def base_image() -> str:
    """Return the base image named by BASE, or build one. Raise NotBuilt if that fails."""
    return os.environ.get("BASE") or base()


@cache
def built() -> Images:
    """Build all images into buildah's storage. Raise NotBuilt if that fails."""
    images = Images(PREFIX, version(), REDIS)
    forget_trees(cache_folder() / "trees")
    with step("a base for images"):
        on = base_image()
    for target in TARGETS:
        with step(f"image {target}"):
            build(image(target, PREFIX, base=on), "buildah")
            if target in UPGRADED:
                tag_as(images.of(target), images.of(target, images.next_tag))
    with step("image of Redis"):
        build(Image(REDIS, FOLDERS / "redis", arguments={"BASE": on}), "buildah")
    return images


def forget_trees(folder: Path) -> None:
    """Delete images of trees that no longer exist; the folder records the path of each tree.

    Raise NotBuilt if that fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TREE).write_text(str(ROOT), "utf-8")
    for record in folder.iterdir():
        if not Path(record.read_text("utf-8")).exists():
            for name in buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
                if name.startswith(prefix(record.name)):
                    buildah("rmi", name)
            record.unlink(missing_ok=True)


def pause() -> str:
    """Build the image of each pod's first container. Raise NotBuilt if that fails."""
    build(Image(PAUSE, Path(find("pause")).parent, FOLDERS / "pause" / "Dockerfile"), "buildah")
    return PAUSE

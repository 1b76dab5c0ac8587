"""Build the images of this tree once for all tests, and remove all containers after them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e import host
from tests.e2e.images import Images, base_image, built
from tests.images.owner import remove_leftovers
from tests.kubernetes.fixtures import api_server, cluster, defined, namespace, new_namespace
from tests.servers import Server
from tools.cache import NotBuilt

__all__ = ["api_server", "cluster", "defined", "namespace", "new_namespace"]


@pytest.fixture(scope="session")
def images() -> Iterator[Images]:
    """Yield the images, and leave the machine unchanged after the last test."""
    try:
        images = built()
    except NotBuilt as error:
        pytest.fail(str(error), pytrace=False)
    remove_leftovers()
    before = host.state()
    yield images
    remove_leftovers()  # podman mounts its storage while it works; a killed process leaves that to the next one
    host.check_it_is_as(before)


@pytest.fixture(scope="session")
def base() -> str:
    """Return the base image of the images."""
    return base_image()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a Redis server from Debian."""
    server = Server("redis", tmp_path_factory.mktemp("store")).start()
    yield server
    server.end()

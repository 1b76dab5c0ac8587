"""A release in its own namespace, with its cleanup after the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.diagnosis import diagnosis
from tests.e2e.images import Images
from tests.e2e.namespaces import own_namespace
from tests.e2e.release import Release
from tests.e2e.steps import step
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.namespaces import RESTRICTED


@contextmanager
def released(cluster: Cluster, images: Images) -> Iterator[Release]:
    """Yield a release to install, in a namespace that admits only restricted pods, and always remove it afterwards.

    On an exception, attach the state of the cluster as a note, because it is gone after the removal.
    """
    with own_namespace(cluster, RESTRICTED) as name:
        release = Release(cluster, name, images, brings_definitions=not _definitions(cluster))
        try:
            yield release
        except Exception as error:
            error.add_note(diagnosis(cluster))
            raise
        finally:
            release.remove()


@pytest.fixture(scope="module")
def definitions(cluster: Cluster) -> Iterator[None]:
    """Delete the CustomResourceDefinitions that the tests created, because an uninstall keeps them.

    Definitions that existed before are used and kept.
    """
    before = _definitions(cluster)
    if before:
        with step("the cluster's own CustomResourceDefinitions are used: those of this version, it is hoped"):
            pass
    yield
    if made := _definitions(cluster) - before:
        cluster.kubectl("delete", *made, "--timeout=60s")


def _definitions(cluster: Cluster) -> set[str]:
    lines = cluster.kubectl("get", "crds", "-o", "name").splitlines()
    return {line for line in lines if line.endswith(".penstock.dev")}

"""A release in a namespace of its own, and what of it must not outlive its tests."""

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
    """To be installed, in a namespace that admits only restricted pods; it goes however its test ended.

    How the cluster stood when something failed goes with what was raised: afterwards nothing of it is there.
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
    """An uninstall keeps them: on somebody's own cluster they stay only if they were there before, and are used."""
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

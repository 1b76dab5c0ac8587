"""Randomised tests: no time limit for an example (machines are shared); a failure says how to repeat it.

And what several folders of tests share: an API server is started once in each process, where a test asks for it.
"""

from hypothesis import settings

from tests.kubernetes.fixtures import (
    api_server,
    cluster,
    defined,
    namespace,
    new_namespace,
    restricted,
)

__all__ = ["api_server", "cluster", "defined", "namespace", "new_namespace", "restricted"]

settings.register_profile("penstock", deadline=None, print_blob=True)
settings.load_profile("penstock")

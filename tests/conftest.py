"""Randomised tests: no time limit for an example (machines are shared); a failure says how to repeat it.

And what several folders of tests share: an API server is started once in each process, where a test asks for it.
"""

from collections.abc import Generator

import pytest
from hypothesis import settings

from tests.kubernetes.fixtures import (
    api_server,
    cluster,
    defined,
    namespace,
    new_namespace,
    restricted,
)
from tests.stores import spares

__all__ = ["api_server", "cluster", "defined", "namespace", "new_namespace", "restricted", "spares"]

settings.register_profile("penstock", deadline=None, print_blob=True)
settings.load_profile("penstock")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Names of queues have any octets. One that was printed or logged would end the run: reports go as UTF-8."""
    report = yield
    report.sections = [(title, _utf8(text)) for title, text in report.sections]
    text = report.longreprtext
    if text != _utf8(text):
        report.longrepr = _utf8(text)
    return report


def _utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()

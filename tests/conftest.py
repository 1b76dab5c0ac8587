"""Randomised tests: no time limit for an example (machines are shared); a failure says how to repeat it.

And what several folders of tests share: an API server is started once in each process, where a test asks for it.
"""

import signal
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

__all__ = ["api_server", "cluster", "defined", "namespace", "new_namespace", "restricted"]

# a run in the background ignores them, and so would every program that a test starts
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

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

"""Configure randomised tests, and provide the fixtures that several folders share.

Examples have no time limit, as machines are shared; a failure prints how to reproduce it. An API server and a store are
started once in each test process, when first needed.
"""

import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

from tests.kit.authority import authority, foreign_authority
from tests.kubernetes.fixtures import (
    api_server,
    cluster,
    defined,
    namespace,
    new_namespace,
    pytest_runtest_setup,
    restricted,
)
from tests.stores import (
    chance,
    new_server,
    own_cluster,
    own_server,
    replicated,
    running,
    server,
    server_program,
    spares,
    standing,
    whole_replicated,
)

__all__ = [
    "api_server",
    "authority",
    "chance",
    "cluster",
    "defined",
    "foreign_authority",
    "namespace",
    "new_namespace",
    "new_server",
    "own_cluster",
    "own_server",
    "pytest_runtest_setup",
    "replicated",
    "restricted",
    "running",
    "server",
    "server_program",
    "spares",
    "standing",
    "whole_replicated",
]

# a background run ignores these signals, and the programs that tests start would inherit that
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

settings.register_profile("penstock", deadline=None, print_blob=True)
settings.load_profile("penstock")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make reports valid UTF-8: a printed or logged queue name with other octets would end the run."""
    report = yield
    report.sections = [(title, _utf8(text)) for title, text in report.sections]
    text = report.longreprtext
    if text != _utf8(text):
        report.longrepr = _utf8(text)
    return report


def _utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()

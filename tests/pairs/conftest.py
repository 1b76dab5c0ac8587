from tests.stores import pytest_asyncio_loop_factories
from tests.sysv.conftest import keys

__all__ = ["keys", "pytest_asyncio_loop_factories"]

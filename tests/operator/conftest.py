"""Provide an operator process with a real API server and a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from penstock_operator.cluster.api import Api

from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import Cluster
from tests.operator.inside import Inside, access
from tests.operator.keeper import Keeper
from tests.operator.line import Line
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen
from tests.servers import PROGRAMS, Server

NewOperator = Callable[..., OperatorProgram]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Server]:
    """Yield a store that is not set up, which the test may kill or empty."""
    server = Server(next(iter(PROGRAMS)), tmp_path / "store").start()
    yield server
    server.end()


@pytest.fixture
def keeper(store: Server) -> Keeper:
    return Keeper(store)


@pytest.fixture
def line(api_server: ApiServer) -> Iterator[Line]:
    """Yield the connection to the API server."""
    with Line(api_server.port) as line:
        yield line


@pytest.fixture
def seen(defined: Cluster, namespace: str) -> Seen:
    return Seen(defined, namespace)


@pytest.fixture
def new_operator(defined: Cluster, namespace: str, store: Server, tmp_path: Path) -> Iterator[NewOperator]:
    """Yield a function that starts operators, by default for the test's namespace; they end with the test."""
    made: list[OperatorProgram] = []

    def start(cluster: Cluster = defined, **settings: object) -> OperatorProgram:
        program = OperatorProgram(cluster, store.url, tmp_path, **{"namespaces": namespace, **settings})
        made.append(program)
        return program.start()

    yield start
    for program in made:
        program.kill()
    let_go(defined)
    for program in made:
        faults = "\n".join(line for line in program.text().splitlines() if "Traceback" in line)
        if faults:
            pytest.fail(f"faults of the operator's own:\n{faults[:6000]}", pytrace=False)


def let_go(cluster: Cluster) -> None:
    """Remove finalizers, because no operator is left to do it."""
    for found in cluster.items("queues"):
        if found["metadata"].get("finalizers"):
            Seen(cluster, found["metadata"]["namespace"]).finalizers("queue", found["metadata"]["name"])


@pytest.fixture
def operator(new_operator: NewOperator) -> OperatorProgram:
    """Return a ready operator of the test's namespace."""
    return new_operator().ready()


@pytest.fixture
async def inside(defined: Cluster) -> AsyncIterator[Inside]:
    """Yield parts of the operator in this process, with an administrator's permissions."""
    api = Api(lambda: access(defined))
    yield Inside(api)
    await api.close()

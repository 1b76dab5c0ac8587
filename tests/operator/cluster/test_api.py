"""Test the operator with the API server: log-in, and writing of statuses.

docs/kubernetes.md, "Failures".
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from penstock_operator.cluster.api import CONFLICT_PAUSES_S, Access, Api, ApiError
from penstock_operator.cluster.resources import Kind
from penstock_operator.documents.conditions import Ready, Reason, Verdict
from penstock_operator.kopf_handlers import log_in
from penstock_operator.status.statuses import Statuses

from services.kit.net.tls import TlsSettings, server_context
from tests.kit.authority import Authority
from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import Cluster, CommandFailed
from tests.operator.inside import Inside, access, read
from tests.operator.line import Line
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen, queue
from tests.operator.rights import rights
from tests.servers import Server, eventually

WELL = Verdict(Ready.YES, Reason.DECLARED, "as it is declared", {"depth": 1})
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
LogIns = Callable[..., tuple[Api, list[str]]]


@pytest.fixture
async def log_ins(cluster: Cluster) -> AsyncIterator[LogIns]:
    """Yield a function that makes an Api which logs in with these tokens in turn; it also returns the unused ones."""
    made: list[Api] = []

    def make(*tokens: str) -> tuple[Api, list[str]]:
        left = list(tokens)

        def log_in() -> Access:
            return access(cluster, left.pop(0))

        made.append(Api(log_in))
        return made[-1], left

    yield make
    for api in made:
        await api.close()


async def test_expired_token_is_renewed(log_ins: LogIns, defined: Cluster, seen: Seen) -> None:
    """Check that a call with an expired token is repeated with a new one, which later calls use, as in pods."""
    api, left = log_ins("worn out", defined.new_token(seen.namespace, "default"), "never asked for")
    for _ in range(2):
        made = await api.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", REVIEW)
        assert made["status"]["userInfo"]["username"] == f"system:serviceaccount:{seen.namespace}:default"
    assert left == ["never asked for"]


async def test_call_is_repeated_once_only(log_ins: LogIns) -> None:
    api, left = log_ins("worn out", "worn out, too", "never asked for")
    with pytest.raises(ApiError) as refused:
        await api.call("GET", "/api/v1/namespaces")
    assert (refused.value.status, left) == (401, ["never asked for"])


async def test_forbidden_call_does_not_log_in_again(log_ins: LogIns, defined: Cluster, seen: Seen) -> None:
    """Check that a forbidden call (403) does not log in again, which would not help."""
    api, left = log_ins(defined.new_token(seen.namespace, "default"), "never asked for")
    with pytest.raises(ApiError) as refused:
        await api.call("GET", "/api/v1/namespaces")
    assert (refused.value.status, left) == (403, ["never asked for"])


def test_rejected_credentials_end_the_operator(
    api_server: ApiServer, line: Line, seen: Seen, store: Server, tmp_path: Path
) -> None:
    """Check that rejected credentials end the operator, so that its pod visibly restarts. Its log has tracebacks."""
    seen.apply(*rights("default", "ServiceAccount"))
    known = api_server.as_service_account(seen.namespace, "default", line.port)
    eventually(lambda: known.may("patch", "queues.penstock.dev/status", seen.namespace))
    running = OperatorProgram(known, store.url, tmp_path, namespaces=seen.namespace).start()
    try:
        running.ready()
        seen.delete("serviceaccount", "default")
        eventually(lambda: is_unknown(known))  # the API server caches it for some seconds
        line.break_all()
        assert running.ended() == 1
    finally:
        running.kill()
    assert "penstock: the API server refused: Unauthorized" in running.text()


def is_unknown(cluster: Cluster) -> bool:
    try:
        cluster.items("namespaces")
    except CommandFailed as refused:
        return refused.status == 401
    raise AssertionError("the user may not list namespaces")


async def test_a_list_has_all_pages(inside: Inside, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock_operator.cluster.api.PAGE", 2)
    names = [f"q{number}" for number in range(5)]
    seen.apply(*map(queue, names))
    found = [each async for each in inside.api.list(Kind.QUEUE, seen.namespace)]
    assert [each["metadata"]["name"] for each in found] == names


async def test_recreated_object_gets_no_status(inside: Inside, seen: Seen) -> None:
    """Check that a verdict about a deleted object is not written to its successor."""
    seen.apply(queue("orders"))
    old = read(seen, "queue", "orders")
    seen.delete("queue", "orders")
    seen.apply(queue("orders"))
    with pytest.raises(ApiError) as refused:
        await inside.api.apply_status(old, {"depth": 1})
    assert refused.value.status == 409
    await inside.statuses.settle(old, WELL)
    new = read(seen, "queue", "orders")
    assert (new.uid != old.uid, new.status) == (True, {})
    assert seen.events("orders") == []
    assert inside.mirror.of(Kind.QUEUE) == []
    assert inside.count("penstock_operator_status_patches_total") == 0


async def test_deleted_object_is_no_failure(inside: Inside, seen: Seen) -> None:
    seen.apply(queue("orders"))
    old = read(seen, "queue", "orders")
    seen.delete("queue", "orders")
    await inside.statuses.settle(old, WELL)
    assert seen.cluster.items("queues", seen.namespace) == []


class Quicker:
    """A proxy of the API server: before each write of a status, another client changes the object."""

    def __init__(self, behind: Access, seen: Seen, name: str) -> None:
        self._behind = behind
        self._seen, self._name = seen, name
        self.wins = 0  # remaining conflicts
        self.writes = 0

    async def answer(self, request: web.Request) -> web.Response:
        if request.method == "PATCH":
            self.writes += 1
            if self.writes <= self.wins:
                label = {"metadata": {"labels": {"changed": f"n{self.writes}"}}}
                self._seen.cluster.patch("queue", self._name, label, self._seen.namespace)
        headers = {**self._behind.headers, "Content-Type": request.headers["Content-Type"]}
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                request.method,
                self._behind.server + request.path_qs,
                data=await request.read(),
                headers=headers,
                ssl=self._behind.trust,
            ) as reply,
        ):
            return web.Response(status=reply.status, body=await reply.read(), content_type="application/json")


async def test_intermediate_ca_alone_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that an intermediate CA suffices if the kubeconfig's CA file lacks the root."""
    authority = Authority.create(tmp_path, is_intermediate=True)

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"kind": "Status"})

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(
        runner, "127.0.0.1", 0, ssl_context=server_context(TlsSettings(**authority.listener()))
    ).start()
    server = f"https://127.0.0.1:{runner.addresses[0][1]}"
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"server": server, "certificate-authority": str(tmp_path / "ca.pem")}
    kubeconfig.write_text(json.dumps({
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
        "clusters": [{"name": "one", "cluster": cluster}],
        "users": [{"name": "one", "user": {"token": "none"}}],
    }))  # fmt: skip
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    api = Api(log_in)
    try:
        assert await api.call("GET", "/version") == {"kind": "Status"}
    finally:
        await api.close()
        await runner.cleanup()


async def test_repeated_conflicts_are_retried_later(defined: Cluster, seen: Seen, inside: Inside) -> None:
    """Check that after a few conflicts the key is retried later, as after other failures."""
    seen.apply(queue("orders"))
    quicker = Quicker(access(defined), seen, "orders")
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", quicker.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    api = Api(lambda: Access(f"http://{host}:{port}", {}, access(defined).trust))
    try:
        resource = read(seen, "queue", "orders")
        quicker.wins = 1000
        statuses = Statuses(api, inside.recorder, inside.mirror, inside.metrics)
        with pytest.raises(ApiError, match="other clients keep changing it"):
            await asyncio.wait_for(statuses.settle(resource, WELL), 60)
        assert quicker.writes == len(CONFLICT_PAUSES_S)
        quicker.wins = quicker.writes + 1
        await statuses.settle(resource, WELL)
        assert read(seen, "queue", "orders").status["depth"] == 1
    finally:
        await api.close()
        await runner.cleanup()

"""The HTTP application: find the route, authorise, run the handler, write the audit log, and respond."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import unquote_to_bytes

from aiohttp import web

from services.console.access.authorization import Caller
from services.console.access.foreign_pages import OriginCheck
from services.console.access.identity import Identities
from services.console.access.unauthenticated_log import UnauthenticatedLog
from services.console.audit.audit import DONE, FAULT, UNKNOWN
from services.console.console_metrics import ConsoleMetrics
from services.console.contract.problems import Problem, bad_request, problem_of
from services.console.contract.shape import encode
from services.console.core.console import Console
from services.console.core.refusals import error_response, expecting, problem_of_http
from services.console.core.route import Answer, Call, Route
from services.console.http.bodies import read_body, read_document, read_query, reject_compressed
from services.console.http.memory_budget import Share, send
from services.console.http.response_headers import prepare, response_began_at
from services.console.http.static import Page
from services.console.openapi import PREFIX, document
from services.console.routes import ROUTES
from services.kit.net import plain_address
from services.kit.readiness import Readiness
from services.store import StoreError

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LONGEST_PATH = 200  # characters in a log


@cache
def openapi() -> bytes:
    """Return the OpenAPI document as JSON; building it takes 40 ms."""
    return encode(document(ROUTES))


class App:
    """The HTTP application of a console."""

    def __init__(
        self, console: Console, identities: Identities, metrics: ConsoleMetrics, readiness: Readiness
    ) -> None:
        self._console = console
        self._identities = identities
        self._origin_check = OriginCheck(console.settings)
        self._metrics = metrics
        self._readiness = readiness
        self._unauthenticated = UnauthenticatedLog()
        self._openapi = openapi()

    def application(self) -> web.Application:
        """Return the aiohttp application with all routes."""
        app = web.Application(middlewares=[self._respond])
        app.on_response_prepare.append(prepare)
        for route in ROUTES:
            path = PREFIX + route.path.replace("}", ":[^/]+}")
            handler = self._handler(route)
            app.router.add_route(route.method, path, handler, expect_handler=expecting(route))
            if route.method == "GET":
                app.router.add_route("HEAD", path, handler)
        app.router.add_get("/openapi.json", self._document)
        app.router.add_get(f"{PREFIX}/openapi.json", self._document)
        app.router.add_get("/healthz", _healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get(f"/{{path:(?!{PREFIX[1:]}/).*}}", Page().serve)
        return app

    # middleware

    @web.middleware
    async def _respond(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turn exceptions into problem documents, log internal errors, and count the response."""
        began = time.monotonic()
        try:
            reject_compressed(request)
            response = await handler(request)
        except Problem as problem:
            response = error_response(request, problem)
        except StoreError as error:
            response = error_response(request, problem_of(error))
        except web.HTTPException as error:
            response = error_response(request, problem_of_http(error, request))
        except web.RequestPayloadError as error:
            response = error_response(request, bad_request(f"malformed request body: {error}"))
            response.force_close()  # the start of the next request is unknown
        except ConnectionError as error:  # the client is gone; for metrics
            response = error_response(
                request, Problem(400, "connection_lost", f"the connection was lost: {error}")
            )
        except Exception as error:
            self._metrics.internal_error()
            fields = {"action": "console_fault", "method": request.method, "path": request.path}
            log.critical("request failed: internal error: %r", error, exc_info=error, extra=fields)
            response = error_response(request, Problem(500, "fault", "internal error: see the console's log"))
        self._metrics.response(request.method, response.status, response_began_at(request) - began)
        return response

    # routes

    def _handler(self, route: Route) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                caller = self._identify(request)
            except Problem as problem:
                self._log_rejection(request, route, problem)
                raise
            with self._console.budget.share() as share:
                try:
                    caller.check_role(route.role)
                    call = await self._call(request, route, caller, share)
                except (Problem, StoreError) as error:
                    await self._write_audit(caller, route, _target(request, route), error, {})
                    raise
                response = await self._run(call, route)
                return await send(request, response, self._console.settings.stream_timeout_s)

        return handle

    def _identify(self, request: web.Request) -> Caller:
        self._origin_check.check(request.headers)
        return self._identities.identify(request.headers, plain_address(request.remote or ""))

    def _address(self, request: web.Request) -> str:
        return self._identities.address(request.headers, plain_address(request.remote or ""))

    async def _call(self, request: web.Request, route: Route, caller: Caller, share: Share) -> Call:
        query = read_query(request.rel_url.raw_query_string, route.query)
        body: Any = None
        if route.body is not None:
            body = await read_document(request, route.body, route.longest, share)
        elif request.can_read_body:
            await read_body(request, route.longest, share)
        identify = partial(self._identify, request)
        return Call(self._console, request, caller, path_of(request, route), query, body, share, identify)

    async def _run(self, call: Call, route: Route) -> web.StreamResponse:
        target = "/".join(call.path.values())
        try:
            answer = await route.handler(call)
        except BaseException as error:
            await self._write_audit(call.caller, route, target, error, call.detail)
            raise
        if not isinstance(answer, Answer):
            return answer
        if route.is_change:
            await self._write_audit(call.caller, route, target, None, call.detail)
            if route.path.startswith("/queues/"):
                self._console.live.touch(call.path["name"])
        response = answer.response()
        if not route.is_change and isinstance(response.body, bytes):
            call.share.cover(len(response.body))
        return response

    async def _write_audit(
        self,
        caller: Caller,
        route: Route,
        target: str,
        error: BaseException | None,
        detail: dict[str, Any],
    ) -> None:
        """Write a line for every change, and for every denied read."""
        problem = problem_of(error) if isinstance(error, StoreError) else error
        if route.is_change or (isinstance(problem, Problem) and problem.status == 403):
            minor = _is_minor(route, problem, detail)
            await self._console.audit.write(
                caller, route.action, target, _outcome(problem), detail, minor=minor
            )

    def _log_rejection(self, request: web.Request, route: Route, problem: Problem) -> None:
        """Log a rejected request, but not to the store: it could push all other lines out of the audit log."""
        if not self._is_authenticated(request):
            self._unauthenticated.add(self._address(request), request.method, request.path[:LONGEST_PATH])
        elif route.is_change or problem.status == 403:
            caller = Caller("", None, "", self._address(request))
            self._console.audit.log(caller, route.action, _target(request, route), problem.label)

    def _is_authenticated(self, request: web.Request) -> bool:
        """Return whether the credentials are valid, as they are for some requests from pages of other origins."""
        try:
            self._identities.identify(request.headers, plain_address(request.remote or ""))
        except Problem:
            return False
        return True

    # other paths

    async def _document(self, request: web.Request) -> web.StreamResponse:
        self._origin_check.check(request.headers)
        response = web.Response(
            body=self._openapi, content_type="application/json", headers={"Cache-Control": "no-cache"}
        )
        with self._console.open_budget.share() as share:
            share.cover(len(self._openapi))
            return await send(request, response, self._console.settings.stream_timeout_s)

    async def _readyz(self, _: web.Request) -> web.Response:
        """Name the failed check. It needs no token, so the reason is in the log and on the health port only."""
        fault = self._readiness.unready()
        if fault is None:
            return web.Response(text="ok\n")
        check = fault.partition(":")[0]
        return web.Response(text=f"not ready: {check}; see the log\n", status=503)


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _outcome(error: BaseException | None) -> str:
    """Return the outcome for the audit log."""
    match error:
        case None:
            return DONE
        case Problem():
            return error.label
        case Exception():
            return FAULT
        case _:
            return UNKNOWN


def _is_minor(route: Route, error: BaseException | None, detail: Mapping[str, Any]) -> bool:
    """Return whether nothing was changed, or the action is frequent."""
    is_refused = isinstance(error, Problem) and error.status not in (500, 504)
    return is_refused or route.is_frequent or bool(detail.get("dryRun"))


def path_of(request: web.Request, route: Route) -> dict[str, str]:
    """Return the path's parameters. Names may have any octets, including a slash written as %2F."""
    raw = request.rel_url.raw_path.removeprefix(PREFIX).split("/")
    return {
        part[1:-1]: unquote_to_bytes(raw[at]).decode("utf-8", "surrogateescape")
        for at, part in enumerate(route.path.split("/"))
        if part.startswith("{")
    }


def _target(request: web.Request, route: Route) -> str:
    return "/".join(path_of(request, route).values())

"""The HTTP application: what is asked is found, checked, done, written down and answered, in the order of this file."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import unquote_to_bytes

from aiohttp import web

from services.console.access.authorisation import check_role
from services.console.access.foreign_pages import Guard
from services.console.access.identity import Caller, Identities
from services.console.access.unauthenticated_log import Strangers
from services.console.audit.audit import DONE, FAULT, UNKNOWN
from services.console.contract.problems import Problem, bad_request, problem_of
from services.console.contract.shape import encode
from services.console.core.console import Console
from services.console.core.refusals import expecting, of_http, refused
from services.console.core.route import Answer, Call, Route
from services.console.figures import Figures
from services.console.http.bodies import must_be_plain, read_body, read_document, read_query
from services.console.http.memory_budget import Share, send
from services.console.http.prepared import answered_at, prepare
from services.console.http.static import Page
from services.console.openapi import PREFIX, document
from services.console.routes import ROUTES
from services.kit.net import plain_address
from services.kit.readiness import Readiness
from services.store import StoreError

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LONGEST_PATH = 200  # characters of it in a log


@cache
def openapi() -> bytes:
    """Return the OpenAPI document of all routes; it takes 40 ms to make."""
    return encode(document(ROUTES))


class App:
    def __init__(
        self, console: Console, identities: Identities, figures: Figures, readiness: Readiness
    ) -> None:
        self._console = console
        self._identities = identities
        self._guard = Guard(console.settings)
        self._figures = figures
        self._readiness = readiness
        self._strangers = Strangers()
        self._openapi = openapi()

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._answered])
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

    # around everything

    @web.middleware
    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Whatever goes wrong is a problem; only a fault of ours is one that nobody foresaw."""
        began = time.monotonic()
        try:
            must_be_plain(request)
            response = await handler(request)
        except Problem as problem:
            response = refused(request, problem)
        except StoreError as error:
            response = refused(request, problem_of(error))
        except web.HTTPException as error:
            response = refused(request, of_http(error, request))
        except web.RequestPayloadError as error:
            response = refused(request, bad_request(f"the body is not what its headers say: {error}"))
            response.force_close()  # where the next request would begin nobody knows
        except ConnectionError as error:  # nobody hears this
            response = refused(request, Problem(400, "connection_lost", f"the connection was lost: {error}"))
        except Exception as error:
            self._figures.fault()
            fields = {"action": "console_fault", "method": request.method, "path": request.path}
            log.critical("a fault of ours: %r", error, exc_info=error, extra=fields)
            response = refused(request, Problem(500, "fault", "a fault of our own: the log says more"))
        self._figures.answered(request.method, response.status, answered_at(request) - began)
        return response

    # a route

    def _handler(self, route: Route) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                who = self._let_in(request, route)
            except Problem as problem:
                self._log_stranger(request, route, problem)
                raise
            with self._console.room.share() as share:
                try:
                    check_role(who, route.role)
                    call = await self._call(request, route, who, share)
                except (Problem, StoreError) as error:
                    await self._write_down(who, route, _target(request, route), error, {})
                    raise
                response = await self._done(call, route)
                return await send(request, response, self._console.settings.stream_timeout_s)

        return handle

    def _let_in(self, request: web.Request, route: Route) -> Caller:
        self._guard.check(request.headers)
        return self._identities.of(request.headers, plain_address(request.remote or ""))

    def _address(self, request: web.Request) -> str:
        return self._identities.address(request.headers, plain_address(request.remote or ""))

    async def _call(self, request: web.Request, route: Route, who: Caller, share: Share) -> Call:
        query = read_query(request.rel_url.raw_query_string, route.query)
        body: Any = None
        if route.body is not None:
            body = await read_document(request, route.body, route.longest, share)
        elif request.can_read_body:
            await read_body(request, route.longest, share)
        again = partial(self._let_in, request, route)
        return Call(self._console, request, who, path_of(request, route), query, body, share, again)

    async def _done(self, call: Call, route: Route) -> web.StreamResponse:
        target = "/".join(call.path.values())
        try:
            answer = await route.handler(call)
        except BaseException as error:  # whatever ended it, and however far it had come
            await self._write_down(call.who, route, target, error, call.detail)
            raise
        if not isinstance(answer, Answer):
            return answer
        if route.is_change:
            await self._write_down(call.who, route, target, None, call.detail)
            if route.path.startswith("/queues/"):
                self._console.live.touch(call.path["name"])
        response = answer.response()
        if not route.is_change and isinstance(response.body, bytes):
            call.share.cover(len(response.body))
        return response

    async def _write_down(
        self,
        who: Caller,
        route: Route,
        target: str,
        error: BaseException | None,
        detail: dict[str, Any],
    ) -> None:
        """Every change, whatever became of it; and who was not allowed to see what he asked for."""
        problem = problem_of(error) if isinstance(error, StoreError) else error
        if route.is_change or (isinstance(problem, Problem) and problem.status == 403):
            minor = _is_minor(route, problem, detail)
            await self._console.audit.write(who, route.action, target, _outcome(problem), detail, minor=minor)

    def _log_stranger(self, request: web.Request, route: Route, problem: Problem) -> None:
        """Not into the store: whoever may come as nobody could push everything else out of the audit log."""
        if not self._is_known(request):
            self._strangers.came(self._address(request), request.method, request.path[:LONGEST_PATH])
        elif route.is_change or problem.status == 403:
            who = Caller("", None, "", self._address(request))
            self._console.audit.log(who, route.action, _target(request, route), problem.label)

    def _is_known(self, request: web.Request) -> bool:
        """Whom a page of another origin made to ask may be; a line for each request is of those only who are."""
        try:
            self._identities.of(request.headers, plain_address(request.remote or ""))
        except Problem:
            return False
        return True

    # beside the routes

    async def _document(self, request: web.Request) -> web.StreamResponse:
        self._guard.check(request.headers)
        response = web.Response(
            body=self._openapi, content_type="application/json", headers={"Cache-Control": "no-cache"}
        )
        with self._console.open_room.share() as share:
            share.cover(len(self._openapi))
            return await send(request, response, self._console.settings.stream_timeout_s)

    async def _readyz(self, _: web.Request) -> web.Response:
        """Name the need that is not met. Anyone may ask here, so reasons are in the log and on the health port only."""
        fault = self._readiness.unready()
        if fault is None:
            return web.Response(text="ok\n")
        need = fault.partition(":")[0]
        return web.Response(text=f"not ready: {need}; the log says more\n", status=503)


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _outcome(error: BaseException | None) -> str:
    """For the audit log: of a fault or a request that was cut off nobody knows how far it had come."""
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
    """Nothing was changed, or what everybody changes all the time."""
    is_refused = isinstance(error, Problem) and error.status not in (500, 504)
    return is_refused or route.is_frequent or bool(detail.get("dryRun"))


def path_of(request: web.Request, route: Route) -> dict[str, str]:
    """What stands in the path, octet for octet: a name may hold any, also a slash that was written as %2F."""
    raw = request.rel_url.raw_path.removeprefix(PREFIX).split("/")
    return {
        part[1:-1]: unquote_to_bytes(raw[at]).decode("utf-8", "surrogateescape")
        for at, part in enumerate(route.path.split("/"))
        if part.startswith("{")
    }


def _target(request: web.Request, route: Route) -> str:
    return "/".join(path_of(request, route).values())

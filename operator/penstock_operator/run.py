"""The operator's process, from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from penstock_operator.api import Api, ApiError
from penstock_operator.control import Control
from penstock_operator.handlers import log_in, watch
from penstock_operator.metrics import Metrics
from penstock_operator.releasing import leave
from penstock_operator.settings import OperatorSettings, store_url
from penstock_operator.sweep import Sweep
from services.kit.health import Answers, HealthServer
from services.kit.settings import HealthSettings
from services.store import Store

log = logging.getLogger(__name__)

CLOSE_S = 2.0
REVIEW_VERSION = "authentication.k8s.io/v1"
REVIEWS = f"/apis/{REVIEW_VERSION}/selfsubjectreviews"


async def run(settings: OperatorSettings) -> None:
    """Until SIGTERM or SIGINT. Raises SettingsError, ApiError."""
    metrics = Metrics()
    async with contextlib.AsyncExitStack() as cleanup:
        api = Api(log_in)
        cleanup.push_async_callback(api.close)
        store = Store(store_url(), "operator")
        cleanup.push_async_callback(store.close, CLOSE_S)
        control = Control(settings, store, api, metrics)
        sweep = Sweep(control, api, settings.sweep_s)
        await _serve_health(settings, control, sweep, cleanup)
        tasks = [
            asyncio.create_task(_work(control, sweep), name="work"),
            asyncio.create_task(watch(control, settings.watched), name="watches"),
        ]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        if (error := await refused(api)) is not None:  # kopf then ends with a fault of its own, or without
            raise error
        for result in results:
            if isinstance(result, Exception):
                raise result
        await leave(api, settings.watched, settings.own_namespace)


async def refused(api: Api) -> ApiError | None:
    """Why the API server does not know us any more: then kopf has ended by itself, and that is a failure."""
    try:
        await api.call("POST", REVIEWS, {"apiVersion": REVIEW_VERSION, "kind": "SelfSubjectReview"})
    except ApiError as error:
        return error if error.status == 401 else None
    return None


async def _work(control: Control, sweep: Sweep) -> None:
    """Nothing is looked at before everything is known."""
    await sweep.first()
    async with asyncio.TaskGroup() as group:
        group.create_task(control.run())
        group.create_task(sweep.run())


async def _serve_health(
    settings: OperatorSettings, control: Control, sweep: Sweep, cleanup: contextlib.AsyncExitStack
) -> None:
    def unready() -> str | None:
        trouble = control.store_watch.trouble
        return sweep.trouble or (str(trouble) if trouble is not None else None)

    def render() -> bytes:
        control.statuses.count()
        control.metrics.waiting.set(control.work.depth)
        return control.metrics.render()

    health = HealthServer(
        HealthSettings(host=settings.health_host, port=settings.health_port),
        Answers(render, unready, sweep.stuck),
    )
    await health.start()
    cleanup.push_async_callback(health.close)

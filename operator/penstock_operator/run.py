"""Run the operator process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection
from typing import Any

from penstock_operator.cluster.api import Api, ApiError
from penstock_operator.control import Control
from penstock_operator.definitions import Definitions
from penstock_operator.kopf_handlers import WatchesEnded, log_in, stop_by_signals, watch
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.settings import OperatorSettings, store_url, tracing_settings
from penstock_operator.sweep import Sweep
from penstock_operator.uninstall_finalizers import leave
from services.kit.config import HealthSettings
from services.kit.process import HealthServer, HealthSources
from services.kit.readiness import Readiness
from services.kit.tracing import tracing
from services.store import Store
from services.store.tracing import Observer

log = logging.getLogger(__name__)

CLOSE_S = 2.0
CANCEL_S = 2.0
REVIEW_VERSION = "authentication.k8s.io/v1"
REVIEWS = f"/apis/{REVIEW_VERSION}/selfsubjectreviews"


async def run(settings: OperatorSettings) -> None:
    """Run until SIGTERM or SIGINT. Raises SettingsError, ApiError, WatchesEnded."""
    metrics = Metrics(settings.max_queues if settings.queue_metrics else 0)
    stop = asyncio.Event()
    stop_by_signals(stop)
    async with contextlib.AsyncExitStack() as cleanup:
        api = Api(log_in)
        cleanup.push_async_callback(api.close)
        recorder = tracing(tracing_settings(), "operator")  # traces of redriven messages
        if recorder is not None:
            recorder.start()
            cleanup.push_async_callback(recorder.close)
        store = Store(store_url(), "operator", observe=Observer(recorder))
        cleanup.push_async_callback(store.close, CLOSE_S)
        control = Control(settings, store, api, metrics)
        sweep = Sweep(control, api, settings.sweep_s)
        definitions = Definitions(api)
        await _serve_health(settings, control, sweep, definitions, cleanup)
        others = asyncio.all_tasks()
        tasks = [
            asyncio.create_task(_work(control, sweep), name="work"),
            asyncio.create_task(_watch(control, settings, definitions, stop), name="watches"),
        ]
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait((*tasks, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        await _end(tasks, others)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        if (error := await refused(api)) is not None:  # kopf then ends with an unrelated error, or none
            raise error
        ended = next((each for each in results if isinstance(each, Exception)), None)
        if ended is None and not stop.is_set():  # kopf's end may cancel other tasks
            ended = WatchesEnded("the watches ended")
        if isinstance(ended, WatchesEnded) and (missing := await definitions.missing()):
            raise WatchesEnded(f"the watches ended: {missing}") from ended
        if ended is not None:
            raise ended
        await leave(api, settings.watched, settings.own_namespace)


async def _watch(
    control: Control, settings: OperatorSettings, definitions: Definitions, stop: asyncio.Event
) -> None:
    """Wait for the CRDs, then watch. Deleting a CRD later ends kopf and thus the process."""
    waiting, stopped = asyncio.create_task(definitions.wait()), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((waiting, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        stopped.cancel()
    if not stop.is_set():
        await waiting
        await watch(control, settings.watched, stop)


async def _end(tasks: Collection[asyncio.Task[None]], others: Collection[asyncio.Task[Any]]) -> None:
    """Cancel the tasks, and after each CANCEL_S everything that is still running.

    A task group that is ending does not pass on a second cancellation, so that the tasks in it are cancelled directly.
    others: tasks from before, which are left alone.
    """
    pending: set[asyncio.Task[Any]] = set(tasks)
    left = set(tasks)
    while left:
        for task in pending:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_S)
        pending = asyncio.all_tasks().difference(others)


async def refused(api: Api) -> ApiError | None:
    """Return the error if the API server no longer accepts the credentials, which ends kopf."""
    try:
        await api.call("POST", REVIEWS, {"apiVersion": REVIEW_VERSION, "kind": "SelfSubjectReview"})
    except ApiError as error:
        return error if error.status == 401 else None
    return None


async def _work(control: Control, sweep: Sweep) -> None:
    """List all resources, then reconcile."""
    await sweep.first()
    async with asyncio.TaskGroup() as group:
        group.create_task(control.run())
        group.create_task(sweep.run())
        group.create_task(sweep.follow_neighbours())


async def _serve_health(
    settings: OperatorSettings,
    control: Control,
    sweep: Sweep,
    definitions: Definitions,
    cleanup: contextlib.AsyncExitStack,
) -> None:
    def store_fault() -> str | None:
        trouble = control.store_watch.trouble
        return None if trouble is None else str(trouble)

    readiness = Readiness(
        definitions=lambda: definitions.trouble, resources=lambda: sweep.trouble, store=store_fault
    )

    def freshen() -> None:
        control.statuses.count()
        control.metrics.waiting.set(control.work.depth)

    health = HealthServer(
        HealthSettings(host=settings.health_host, port=settings.health_port),
        HealthSources(control.metrics.render, readiness, sweep.stuck, freshen),
    )
    await health.start()
    cleanup.push_async_callback(health.close)

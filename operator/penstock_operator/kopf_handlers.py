"""Handlers for kopf and its login; no other module uses kopf.

kopf watches, reconnects, and manages the finalizer. The handlers only forward events: `control` does the work, which
must not depend on events.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import logging
import os
import re
import ssl
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import kopf
from kopf import AnnotationsDiffBaseStorage, AnnotationsProgressStorage

from penstock_operator.cluster.api import Access, ApiError
from penstock_operator.cluster.resources import Kind, Resource
from penstock_operator.control import Control
from penstock_operator.documents.crds import GROUP, VERSION
from penstock_operator.documents.declared import FINALIZER, is_removed_with_its_resource
from penstock_operator.peers.discovery import DISCOVER
from penstock_operator.uninstall_finalizers import KINDS
from services.kit.startup_sigterm import stop_signals
from services.outside.document import BadDocument, read_yaml
from services.store import StoreError

log = logging.getLogger(__name__)

LOGIN_AGAIN_S = 1.0  # kopf's default is a minute
DELETE_AGAIN_S = 1.0  # doubles with each attempt
LONGEST_PAUSE_S = 10.0
REQUEST_TIMEOUT_S = 30.0
BACKOFFS_S = (1.0, 1.0, 2.0, 3.0, 5.0)  # between attempts at a failed request; afterwards
LONGEST_BACKOFF_S = 10.0  # without limit
RETRY = re.compile(r"Request attempt #(\d+)\S* failed; will retry")
LOGGED = 10  # log so many failed attempts at a request, then one in as many


class WatchesEnded(Exception):
    """kopf has stopped watching on its own."""


class Backoffs:
    """An endless series of pauses: with kopf's own eight it would give up the watch and exit."""

    def __iter__(self) -> Iterator[float]:
        yield from BACKOFFS_S
        while True:
            yield LONGEST_BACKOFF_S


class DigestStorage(AnnotationsDiffBaseStorage):
    """Stores a digest of the spec in kopf's annotation: whole documents may exceed the limit of 256 KiB."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        """Return a digest of the spec, the only part whose changes are handled."""
        spec = json.dumps(dict(body.get("spec") or {}), sort_keys=True)
        return kopf.BodyEssence(spec={"sha256": hashlib.sha256(spec.encode()).hexdigest()})


class Connection(kopf.ConnectionInfo):
    """A connection to the API server that also trusts a CA file with only an intermediate certificate."""

    def as_ssl_context(self) -> ssl.SSLContext:
        """Return kopf's context with partial chains allowed."""
        context = super().as_ssl_context()
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context


def connection() -> Connection:
    """Log in as the pod's service account, or with the kubeconfig's current context. Raises kopf.LoginError."""
    settings = kopf.OperatorSettings()
    found = kopf.login_with_service_account(settings=settings, logger=log)
    if found is not None:
        return _connection(found)
    if not (paths := _kubeconfigs()):
        raise kopf.LoginError(
            "there is neither a service account nor a kubeconfig: set KUBECONFIG, or run in a pod"
        )
    try:
        for path in paths:
            read_yaml(Path(path).read_bytes())  # kopf's errors do not say where the file is wrong
        found = kopf.login_with_kubeconfig(settings=settings, logger=log)
        if found is None or not isinstance(found.server, str):
            raise kopf.LoginError("its cluster has no server")
        usable = _connection(found)
        usable.as_http_headers(), usable.as_ssl_context()
    except BadDocument as error:
        raise kopf.LoginError(f"kubeconfig {path}: {error}") from None
    except (KeyError, AttributeError, TypeError) as error:  # kopf does not check for missing fields
        text = f"the current context, its cluster or its user is missing or wrong: {error}"
        raise kopf.LoginError(f"kubeconfig {os.pathsep.join(paths)}: {text}") from None
    except (kopf.LoginError, OSError, ValueError) as error:  # ValueError: invalid base64
        raise kopf.LoginError(f"kubeconfig {os.pathsep.join(paths)}: {error}") from None
    return usable


def _connection(found: kopf.ConnectionInfo) -> Connection:
    return Connection(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)})


def _kubeconfigs() -> list[str]:
    """Return the kubeconfig files that kopf reads, in order of precedence."""
    named = [path.strip() for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path.strip()]
    default = os.path.expanduser("~/.kube/config")
    return [os.path.expanduser(path) for path in named] or ([default] if os.path.exists(default) else [])


def log_in() -> Access:
    """Return the API server's address and credentials. Raises ApiError."""
    try:
        found = connection()
        return Access(found.server, found.as_http_headers(), found.as_ssl_context())
    except (kopf.LoginError, OSError) as error:
        raise ApiError(401, str(error)) from error


def quiet_kopf_logs() -> None:
    """Suppress kopf's log messages for each resource, and drop the objects from its log records."""

    def bare(record: logging.LogRecord) -> bool:
        for name in ("settings", "k8s_skip"):
            vars(record).pop(name, None)
        # the store is unavailable, which is logged once elsewhere
        return "failed temporarily" not in record.getMessage()

    objects = logging.getLogger("kopf.objects")
    objects.setLevel(logging.WARNING)
    objects.addFilter(bare)
    for name in ("kopf.objects", "kopf._cogs.clients.watching"):
        logging.getLogger(name).addFilter(_is_worth_logging)


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Return whether to log a record: retries in a namespace without rights go on, and the sweep logs the cause."""
    found = RETRY.match(record.getMessage())
    return found is None or int(found[1]) <= LOGGED or int(found[1]) % LOGGED == 0


def operator_settings() -> kopf.OperatorSettings:
    """Return the settings for kopf."""
    settings = kopf.OperatorSettings()
    settings.persistence.finalizer = FINALIZER
    settings.persistence.progress_storage = AnnotationsProgressStorage(prefix=GROUP)
    settings.persistence.diffbase_storage = DigestStorage(prefix=GROUP, key="last-handled")
    settings.posting.enabled = False  # the operator writes its own events
    settings.peering.standalone = True
    settings.networking.request_timeout = REQUEST_TIMEOUT_S
    settings.networking.error_backoffs = Backoffs()
    settings.watching.label_selectors[f"{Kind.SLICE}.discovery.k8s.io"] = f"{DISCOVER}=true"
    return settings


def registry_of(control: Control) -> kopf.OperatorRegistry:
    """Return the registry with all handlers."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry, backoff=LOGIN_AGAIN_S)(lambda **_: connection())
    for kind in KINDS:
        _watch(control, kind, registry)
    kopf.on.event("discovery.k8s.io", "v1", Kind.SLICE.value, registry=registry)(_follow(control, Kind.SLICE))
    _handle_deletion(control, registry)
    return registry


def _watch(control: Control, kind: Kind, registry: kopf.OperatorRegistry) -> None:
    where = (GROUP, VERSION, kind.value)

    async def changed(body: kopf.Body, **_: Any) -> None:
        control.on_change(Resource.read(kind, body))

    async def happened(event: kopf.RawEvent, **_: Any) -> None:
        resource = Resource.read(kind, event["object"])
        if event["type"] == "DELETED":
            control.on_delete(resource)
        elif control.mirror.has(resource):
            control.on_event(resource)
        else:
            # a copy with kopf's annotations of another resource is not a creation to kopf
            control.on_change(resource)

    kopf.on.create(*where, registry=registry, id="declared")(changed)
    kopf.on.update(*where, registry=registry, field="spec", id="changed")(changed)
    kopf.on.resume(*where, registry=registry, id="resumed")(changed)
    kopf.on.event(*where, registry=registry, id="happened")(happened)


def _follow(control: Control, kind: Kind) -> Any:
    """Return a handler for events of EndpointSlices, which kopf's change handlers do not cover."""

    async def happened(event: kopf.RawEvent, **_: Any) -> None:
        resource = Resource.read(kind, event["object"])
        control.on_delete(resource) if event["type"] == "DELETED" else control.on_change(resource)

    return happened


def _handle_deletion(control: Control, registry: kopf.OperatorRegistry) -> None:
    def is_ours_to_remove(spec: kopf.Spec, **_: Any) -> bool:
        return is_removed_with_its_resource(dict(spec))

    async def leaving(body: kopf.Body, retry: int, **_: Any) -> None:
        try:
            await control.remove(Resource.read(Kind.QUEUE, body))
        except StoreError as error:
            delay = min(DELETE_AGAIN_S * 2**retry, LONGEST_PAUSE_S)
            raise kopf.TemporaryError(str(error), delay=delay) from error

    kopf.on.delete(GROUP, VERSION, Kind.QUEUE.value, registry=registry, id="leaving", when=is_ours_to_remove)(
        leaving
    )


async def watch(control: Control, namespaces: Collection[str], stop: asyncio.Event) -> None:
    """Watch until cancelled. namespaces: () = all. Raises WatchesEnded.

    kopf's stop flag is not used: it would wait five seconds for all tasks of the loop.
    """
    quiet_kopf_logs()
    settings = operator_settings()
    settings.scanning.disabled = bool(namespaces)
    others = asyncio.all_tasks()
    tasks = await kopf.spawn_tasks(
        registry=registry_of(control),
        settings=settings,
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
    )
    stop_by_signals(stop)  # replaces kopf's own handlers
    try:
        await kopf.run_tasks(tasks, ignored=others)
    except Exception as error:
        raise WatchesEnded(f"the watches ended: {error!r}") from error
    if not stop.is_set():
        raise WatchesEnded("the watches ended")


def stop_by_signals(stop: asyncio.Event) -> None:
    """Set `stop` on SIGTERM and the other ending signals."""
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        loop.add_signal_handler(number, stop.set)

"""What kopf calls, and how it logs in: the only module that knows it.

kopf watches, goes on after cuts, and keeps resources with a finalizer until their end was seen to. Handlers only pass
on what they hear: `control` does the work, as it also has to when nothing was heard.
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
from penstock_operator.releasing import OURS
from services.kit.startup_sigterm import stop_signals
from services.outside.document import BadDocument, read_yaml
from services.store import StoreError

log = logging.getLogger(__name__)

LOGIN_AGAIN_S = 1.0  # a minute, if kopf had its way
DELETE_AGAIN_S = 1.0  # twice as long each time
LONGEST_PAUSE_S = 10.0
REQUEST_TIMEOUT_S = 30.0
BACKOFFS_S = (1.0, 1.0, 2.0, 3.0, 5.0)  # of a request that was refused, and then
LONGEST_BACKOFF_S = 10.0  # for as long as it takes
RETRY = re.compile(r"Request attempt #(\d+)\S* failed; will retry")
TOLD = 10  # attempts at a request of which each is logged, and then one in so many


class WatchesEnded(Exception):
    """kopf has ended by itself: nothing is heard of any more."""


class Backoffs:
    """Without an end: kopf gives up a watch, and then everything, when its own eight are over."""

    def __iter__(self) -> Iterator[float]:
        yield from BACKOFFS_S
        while True:
            yield LONGEST_BACKOFF_S


class DigestStorage(AnnotationsDiffBaseStorage):
    """What kopf remembers to see a change. The document may be bigger than the 256 KiB of all annotations together."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        """Of the spec alone: nobody asks for changes of anything else."""
        spec = json.dumps(dict(body.get("spec") or {}), sort_keys=True)
        return kopf.BodyEssence(spec={"sha256": hashlib.sha256(spec.encode()).hexdigest()})


class Connection(kopf.ConnectionInfo):
    """A connection to the API server whose file of authorities may hold an intermediate one alone."""

    def as_ssl_context(self) -> ssl.SSLContext:
        context = super().as_ssl_context()
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context


def connection() -> Connection:
    """As a pod's service account, or as the current context of the kubeconfig. Raises kopf.LoginError."""
    settings = kopf.OperatorSettings()
    found = kopf.login_with_service_account(settings=settings, logger=log)
    if found is not None:
        return _connection(found)
    if not (paths := _kubeconfigs()):
        raise kopf.LoginError("neither a service account nor a kubeconfig tells where the API server is")
    try:
        for path in paths:
            read_yaml(Path(path).read_bytes())  # kopf tells no place in a bad one
        found = kopf.login_with_kubeconfig(settings=settings, logger=log)
        if found is None or not isinstance(found.server, str):
            raise kopf.LoginError("its cluster has no server")
        usable = _connection(found)
        usable.as_http_headers(), usable.as_ssl_context()
    except BadDocument as error:
        raise kopf.LoginError(f"kubeconfig {path}: {error}") from None
    except (KeyError, AttributeError, TypeError) as error:  # kopf takes for granted what may not be there
        text = f"the current context, its cluster or its user is missing or wrong: {error}"
        raise kopf.LoginError(f"kubeconfig {os.pathsep.join(paths)}: {text}") from None
    except (kopf.LoginError, OSError, ValueError) as error:  # ValueError: data that is no base64
        raise kopf.LoginError(f"kubeconfig {os.pathsep.join(paths)}: {error}") from None
    return usable


def _connection(found: kopf.ConnectionInfo) -> Connection:
    return Connection(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)})


def _kubeconfigs() -> list[str]:
    """Return the files that kopf reads, of which the first that names something counts."""
    named = [path.strip() for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path.strip()]
    usual = os.path.expanduser("~/.kube/config")
    return [os.path.expanduser(path) for path in named] or ([usual] if os.path.exists(usual) else [])


def log_in() -> Access:
    """Raises ApiError."""
    try:
        found = connection()
        return Access(found.server, found.as_http_headers(), found.as_ssl_context())
    except (kopf.LoginError, OSError) as error:
        raise ApiError(401, str(error)) from error


def tame_logs() -> None:
    """kopf says of each resource what was done: nobody reads that of thousands. Its records carry whole objects."""

    def bare(record: logging.LogRecord) -> bool:
        for name in ("settings", "k8s_skip"):
            vars(record).pop(name, None)
        return "failed temporarily" not in record.getMessage()  # the store is away: the log says so once

    objects = logging.getLogger("kopf.objects")
    objects.setLevel(logging.WARNING)
    objects.addFilter(bare)
    for name in ("kopf.objects", "kopf._cogs.clients.watching"):
        logging.getLogger(name).addFilter(_is_worth_telling)


def _is_worth_telling(record: logging.LogRecord) -> bool:
    """A namespace without rights is asked for as long as it has none; the pass over everything says why."""
    found = RETRY.match(record.getMessage())
    return found is None or int(found[1]) <= TOLD or int(found[1]) % TOLD == 0


def operator_settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.persistence.finalizer = FINALIZER
    settings.persistence.progress_storage = AnnotationsProgressStorage(prefix=GROUP)
    settings.persistence.diffbase_storage = DigestStorage(prefix=GROUP, key="last-handled")
    settings.posting.enabled = False  # `events` says what is worth saying
    settings.peering.standalone = True
    settings.networking.request_timeout = REQUEST_TIMEOUT_S
    settings.networking.error_backoffs = Backoffs()
    settings.watching.label_selectors[f"{Kind.SLICE}.discovery.k8s.io"] = f"{DISCOVER}=true"
    return settings


def registry_of(control: Control) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry, backoff=LOGIN_AGAIN_S)(lambda **_: connection())
    for kind in OURS:
        _watch(control, kind, registry)
    kopf.on.event("discovery.k8s.io", "v1", Kind.SLICE.value, registry=registry)(_follow(control, Kind.SLICE))
    _see_off(control, registry)
    return registry


def _watch(control: Control, kind: Kind, registry: kopf.OperatorRegistry) -> None:
    where = (GROUP, VERSION, kind.value)

    async def changed(body: kopf.Body, **_: Any) -> None:
        control.heard(Resource.read(kind, body))

    async def happened(event: kopf.RawEvent, **_: Any) -> None:
        resource = Resource.read(kind, event["object"])
        if event["type"] == "DELETED":
            control.gone(resource)
        elif control.mirror.has(resource):
            control.seen(resource)
        else:
            control.heard(
                resource
            )  # also a copy with the annotations of another: that is no creation to kopf

    kopf.on.create(*where, registry=registry, id="declared")(changed)
    kopf.on.update(*where, registry=registry, field="spec", id="changed")(changed)
    kopf.on.resume(*where, registry=registry, id="resumed")(changed)
    kopf.on.event(*where, registry=registry, id="happened")(happened)


def _follow(control: Control, kind: Kind) -> Any:
    """Slices are nobody's documents: whatever happens to one is news."""

    async def happened(event: kopf.RawEvent, **_: Any) -> None:
        resource = Resource.read(kind, event["object"])
        control.gone(resource) if event["type"] == "DELETED" else control.heard(resource)

    return happened


def _see_off(control: Control, registry: kopf.OperatorRegistry) -> None:
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
    """Until it is cancelled. namespaces: () = all. Raises WatchesEnded.

    kopf has a flag to end it by, too; but then it waits five seconds for all tasks of the loop, ours among them.
    """
    tame_logs()
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
    stop_by_signals(stop)  # kopf has put handlers of its own there, and does not say why it ends
    try:
        await kopf.run_tasks(tasks, ignored=others)
    except Exception as error:
        raise WatchesEnded(f"the watches ended: {error!r}") from error
    if not stop.is_set():
        raise WatchesEnded("the watches ended")


def stop_by_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        loop.add_signal_handler(number, stop.set)

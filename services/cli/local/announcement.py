"""Print what `penstock up` has started once everything is ready."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from services.cli.documents.declaring import Change
from services.cli.documents.documents import Declaration
from services.cli.local.child_log import Place
from services.cli.local.child_process import EdgeProcess
from services.cli.terminal.output import Output
from services.console.access import local_token
from services.kit.edge import EdgeSettings, edges
from services.kit.session import Peer
from services.store.model import Promises


@dataclass(frozen=True, slots=True)
class Console:
    """The console's process. `token` is the file of the generated token, unless sign-in is configured."""

    process: EdgeProcess
    is_tls: bool
    token: Path | None

    @property
    def url(self) -> str:
        """Return the console's address."""
        place, scheme = next(iter(self.process.places.values())), "https" if self.is_tls else "http"
        return f"{scheme}://{Peer(*place)}/"

    def __str__(self) -> str:
        """Return the address and how to sign in with the generated token."""
        if self.token is None:
            return self.url
        return local_token.shown(self.url, self.token, at_terminal=sys.stdout.isatty())


@dataclass(frozen=True, slots=True)
class Announcement:
    """The started processes. `declared` has the change for each document, `settings` those of each edge."""

    store: str
    promises: Promises
    declared: Sequence[tuple[Declaration, Change]]
    edges: Sequence[EdgeProcess]
    settings: Mapping[str, EdgeSettings]
    console: Console | None

    def of(self, kind: str) -> dict[str, Change]:
        """Return the changes of the documents of this kind, by name."""
        return {declaration.name: change for declaration, change in self.declared if declaration.kind == kind}


def announce(output: Output, announcement: Announcement) -> None:
    """Print the announcement as text or JSON."""
    if output.as_json:
        output.record(_described(announcement))
    else:
        for line in _lines(announcement):
            output.line(line)
    sys.stdout.flush()


def _described(announcement: Announcement) -> dict[str, Any]:
    promises = announcement.promises
    return {
        "ready": True,
        "store": {"server": promises.server, "version": promises.version, "levels": promises.levels()},
        "queues": {name: change.value for name, change in announcement.of("Queue").items()},
        "peers": {name: change.value for name, change in announcement.of("Peer").items()},
        "edges": {
            edge.name: {
                "listeners": {name: _place(place) for name, place in edge.places.items()},
                "health": _place(edge.health),
            }
            for edge in announcement.edges
        },
        "console": _console(announcement.console) if announcement.console is not None else None,
    }


def _console(console: Console) -> dict[str, Any]:
    return {
        "url": console.url,
        "tokenFile": str(console.token) if console.token is not None else None,
        "health": _place(console.process.health),
    }


def _place(place: Place) -> dict[str, Any]:
    return {"host": place[0], "port": place[1]}


def _lines(announcement: Announcement) -> Iterator[str]:
    promises = announcement.promises
    levels = ", ".join(promises.levels())
    yield (
        f"penstock {version('penstock')}, {announcement.store} "
        f"({promises.server} {promises.version}; ack levels {levels})"
    )
    for declaration, change in announcement.declared:
        yield f"{declaration.kind.lower()} {declaration.name}: {change}"
    for edge in announcement.edges:
        yield ""
        for name, place in edge.places.items():
            yield f"{edge.name} {name}: {_address(place)}"
        yield from (f"    {line}" for line in _examples(edge, announcement.settings[edge.name]))
        yield f"    metrics and health: http://{_address(edge.health)}/metrics, /healthz, /readyz"
    if announcement.console is not None:
        yield ""
        yield f"console: {announcement.console}"
    yield ""
    yield "ready; press Ctrl-C to stop"


def _examples(process: EdgeProcess, settings: EdgeSettings) -> list[str]:
    """Return example commands with the actual ports: the settings may have port 0."""
    listeners = {
        name: listener.model_copy(update={"port": process.places[name][1]})
        if name in process.places
        else listener
        for name, listener in settings.listeners.items()
    }
    return edges()[process.name].example(settings.model_copy(update={"listeners": listeners}))


def _address(place: Place) -> str:
    host, port = place
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

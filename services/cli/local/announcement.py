"""What `penstock up` says once everything is ready."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from services.cli.documents.declaring import Change
from services.cli.documents.documents import Wanted
from services.cli.local.child_log import Place
from services.cli.local.child_process import EdgeProcess
from services.cli.terminal.output import Output
from services.console.access import local_token
from services.kit.edge import EdgeSettings, edges
from services.kit.session import Peer
from services.store.redis import Promises


@dataclass(frozen=True, slots=True)
class Console:
    """`token` is the file of its own token, where nothing is set up."""

    process: EdgeProcess
    is_tls: bool
    token: Path | None

    @property
    def url(self) -> str:
        place, scheme = next(iter(self.process.places.values())), "https" if self.is_tls else "http"
        return f"{scheme}://{Peer(*place)}/"

    def __str__(self) -> str:
        """Return the address, with the way to the token."""
        if self.token is None:
            return self.url
        return local_token.shown(self.url, self.token, at_terminal=sys.stdout.isatty())


@dataclass(frozen=True, slots=True)
class News:
    """`store` says where it is, `declared` what became of the documents, `settings` are each edge's."""

    store: str
    promises: Promises
    declared: Sequence[tuple[Wanted, Change]]
    edges: Sequence[EdgeProcess]
    settings: Mapping[str, EdgeSettings]
    console: Console | None

    def of(self, kind: str) -> dict[str, Change]:
        """What became of the documents of this kind, by name."""
        return {wanted.name: change for wanted, change in self.declared if wanted.kind == kind}


def announce(output: Output, news: News) -> None:
    if output.as_json:
        output.record(_described(news))
    else:
        for line in _lines(news):
            output.line(line)
    sys.stdout.flush()


def _described(news: News) -> dict[str, Any]:
    promises = news.promises
    return {
        "ready": True,
        "store": {"server": promises.server, "version": promises.version, "levels": promises.levels()},
        "queues": {name: change.value for name, change in news.of("Queue").items()},
        "peers": {name: change.value for name, change in news.of("Peer").items()},
        "edges": {
            edge.name: {
                "listeners": {name: _place(place) for name, place in edge.places.items()},
                "health": _place(edge.health),
            }
            for edge in news.edges
        },
        "console": _console(news.console) if news.console is not None else None,
    }


def _console(console: Console) -> dict[str, Any]:
    return {
        "url": console.url,
        "tokenFile": str(console.token) if console.token is not None else None,
        "health": _place(console.process.health),
    }


def _place(place: Place) -> dict[str, Any]:
    return {"host": place[0], "port": place[1]}


def _lines(news: News) -> Iterator[str]:
    promises = news.promises
    levels = ", ".join(promises.levels())
    yield (
        f"penstock {version('penstock')}, {news.store} "
        f"({promises.server} {promises.version}; ack levels {levels})"
    )
    for wanted, change in news.declared:
        yield f"{wanted.kind.lower()} {wanted.name}: {change}"
    for edge in news.edges:
        yield ""
        for name, place in edge.places.items():
            yield f"{edge.name} {name}: {_address(place)}"
        yield from (f"    {line}" for line in _examples(edge, news.settings[edge.name]))
        yield f"    metrics and health: http://{_address(edge.health)}/metrics, /healthz, /readyz"
    if news.console is not None:
        yield ""
        yield f"console: {news.console}"
    yield ""
    yield "ready; Ctrl-C stops everything in order"


def _examples(process: EdgeProcess, settings: EdgeSettings) -> list[str]:
    """With the ports as they are: the settings may leave them open."""
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

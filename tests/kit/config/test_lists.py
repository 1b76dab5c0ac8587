"""Test lists of texts in variables, flags and files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from services.kit.config.layers import SettingsError, read_flags
from services.kit.config.settings import load
from services.kit.edge import Edge, EdgeSettings
from services.kit.net.listener import ListenerSettings


def _place(text: str) -> str:
    if ":" not in text:
        raise ValueError("must be host:port")
    return text


class Inner(BaseModel):
    names: tuple[Annotated[str, AfterValidator(_place)], ...] = ()


class Lists(EdgeSettings):
    listeners: dict[str, ListenerSettings] = {}  # noqa: RUF012 - pydantic copies it
    neighbours: tuple[Annotated[str, AfterValidator(_place)], ...] = ()
    plain: list[str] = []  # noqa: RUF012
    numbers: tuple[int, ...] = ()
    either: str | list[str] = ""
    maybe: list[str] | None = None
    inner: Inner = Inner()
    named: dict[str, Inner] = {}  # noqa: RUF012


def nothing(*_: object) -> Any:
    raise AssertionError("not for this test")


EDGE = Edge("lists", Lists, nothing, nothing)


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REDIS_URL", raising=False)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('["a:1"]', ("a:1",)),
        ('["a:1", "b:2"]', ("a:1", "b:2")),
        ("a:1,b:2", ("a:1", "b:2")),
        (" a:1 , [::1]:2, ", ("a:1", "[::1]:2")),
        ("10:20", ("10:20",)),
        ("[::1]:2", ("[::1]:2",)),
        ("", ()),
        ("[]", ()),
    ],
)
def test_lists_in_environment_variables_are_split(
    monkeypatch: pytest.MonkeyPatch, said: str, meant: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PENSTOCK_EDGES__LISTS__NEIGHBOURS", said)
    assert load().edge(EDGE).neighbours == meant


@pytest.mark.parametrize("said", ["a:1,b:2", "[a:1, b:2]", "['a:1', 'b:2']"])
def test_lists_on_the_command_line_are_split(said: str) -> None:
    flags = read_flags([f"edges.lists.neighbours={said}"])
    assert load(flags=flags).edge(EDGE).neighbours == ("a:1", "b:2")


def test_lists_are_split_at_any_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_EDGES__LISTS__INNER__NAMES", "a:1,b:2")
    monkeypatch.setenv("PENSTOCK_EDGES__LISTS__NAMED__ONE__NAMES", "c:3,d:4")
    monkeypatch.setenv("PENSTOCK_EDGES__LISTS__PLAIN", "e,f")
    monkeypatch.setenv("PENSTOCK_EDGES__LISTS__MAYBE", "g,h")
    settings = load().edge(EDGE)
    assert (settings.inner.names, settings.named["one"].names) == (("a:1", "b:2"), ("c:3", "d:4"))
    assert (settings.plain, settings.maybe) == (["e", "f"], ["g", "h"])


def test_json_lists_are_parsed_and_other_values_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_EDGES__LISTS__EITHER", "a,b")
    assert load().edge(EDGE).either == "a,b"
    monkeypatch.setenv("PENSTOCK_EDGES__LISTS__NUMBERS", "1,2")
    monkeypatch.setenv("PENSTOCK_EDGES__LISTS__LISTENERS__A__PORT", "0")
    monkeypatch.setenv("PENSTOCK_EDGES__LISTS__LISTENERS__A__ALLOW", '["10.0.0.0/8", "fd00::/8"]')
    with pytest.raises(SettingsError, match=r"edges\.lists\.numbers: must be a valid tuple, not '1,2'"):
        load().edge(EDGE)
    monkeypatch.setenv("PENSTOCK_EDGES__LISTS__NUMBERS", "[1, 2]")
    settings = load().edge(EDGE)
    assert settings.numbers == (1, 2)
    assert len(settings.listeners["a"].allow) == 2


def test_error_in_a_list_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_EDGES__LISTS__NEIGHBOURS", "a:1,nowhere")
    with pytest.raises(SettingsError) as caught:
        load().edge(EDGE)
    assert caught.value.lines == [
        "edges.lists.neighbours.1: must be host:port, not 'nowhere' (from PENSTOCK_EDGES__LISTS__NEIGHBOURS)"
    ]

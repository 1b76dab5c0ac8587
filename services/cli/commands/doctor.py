"""Implement `penstock doctor`."""

from __future__ import annotations

from dataclasses import asdict, replace

import click

from services.cli.framework.command import Options, store_command
from services.cli.terminal.exits import Exit, Failure
from services.cli.terminal.output import Output
from services.cli.terminal.text import count
from services.store import Store
from services.store.checkup import examine
from services.store.redis import Finding, Grade


def _explained(finding: Finding) -> Finding:
    """Add the limit that maxmemory was derived from, for a store that `penstock up` runs here."""
    options = click.get_current_context().find_object(Options)
    if finding.subject != "memory" or options is None or options.settings.store.url is not None:
        return finding
    tenant = options.folder.tenant()
    return (
        replace(finding, found=f"{finding.found}: {tenant.memory}") if tenant and tenant.memory else finding
    )


@click.command()
@click.option("--production", is_flag=True, help="apply the stricter rules for production stores")
@store_command
async def doctor(store: Store, output: Output, production: bool) -> None:
    """Check the store and report which guarantees it can keep.

    Each finding says what to do about it. Ends with 1 if a check fails.
    """
    findings = [_explained(finding) for finding in await examine(store, production=production)]
    failed = sum(finding.grade is Grade.FAIL for finding in findings)
    if output.as_json:
        output.record({"ok": not failed, "findings": [asdict(finding) for finding in findings]})
    else:
        rows = [
            (f.subject, f.grade.upper() if f.grade is not Grade.OK else "ok", f.found, f.advice)
            for f in findings
        ]
        output.table(("subject", "", "found", "what to do"), rows)
    if failed:
        raise Failure(Exit.REFUSED, "unhealthy", f"{count(failed, 'check')} failed: see FAIL above")

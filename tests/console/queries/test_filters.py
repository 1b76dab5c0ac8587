"""Test filters of queues and of the audit log."""

from __future__ import annotations

import pytest

from services.console.contract.moments import moment
from services.store.catalogue import audit
from services.store.catalogue.audit import AuditEntry
from tests.console.live_console import LiveConsole


async def _names(console: LiveConsole, query: str) -> list[str]:
    return [row["name"] for row in (await console.found(f"/queues?{query}"))["items"]]


async def _targets(console: LiveConsole, query: str) -> list[str]:
    """Return the targets of all pages, newest first."""
    return [line["target"] for line in await console.every(f"/audit?{query}")]


class TestQueues:
    async def test_some(self, console: LiveConsole) -> None:
        await console.bury(await console.declare("a-order"), b"dead")
        await console.declare("border", paused=True)
        await console.declare("far", remote={"protocol": "rqp-cast", "key": 9, "peers": ["elsewhere"]})
        await console.declare("in", bindings={"ring": {"inbox": 7}})
        await console.declare("orders", bindings={"rqpMca": {"queueId": 7}})
        parts = await console.declare("parts", bindings={"rqpCast": {"key": 8}})
        domain = console.tools.get_domain(parts.domain)
        fence = await domain.claims.own(parts, "who sends it", 60_000)
        assert fence
        assert await domain.claims.set_condition(parts, "no answer", fence)
        await console.declare("text", bindings={"text": {"publish": "t"}})
        for query, names in [
            ("contains=RDER", ["a-order", "border", "orders"]),
            ("contains=order&name=b", ["border"]),
            ("contains=nothing", []),
            ("only=paused", ["border"]),
            ("only=dead", ["a-order"]),
            ("only=remote", ["far"]),
            ("only=trouble", ["parts"]),
            ("protocol=rqp-mca", ["orders"]),
            ("protocol=rqp-cast", ["far", "parts"]),
            ("protocol=text", ["text"]),
            ("protocol=ring", ["in"]),
            ("protocol=ring&only=paused", []),
        ]:
            assert await _names(console, query) == names, query

    async def test_in_pages(self, console: LiveConsole) -> None:
        for number in range(6):
            await console.declare(f"q{number}", paused=number % 2 == 0)
        first = await console.found("/queues?only=paused&limit=2")
        rest = await console.found(f"/queues?only=paused&limit=2&cursor={first['next']}")
        assert [row["name"] for row in first["items"] + rest["items"]] == ["q0", "q2", "q4"]
        assert rest["next"] is None

    async def test_invalid_filters(self, console: LiveConsole) -> None:
        for query in ["only=x", "protocol=tmq", "contains=a&contains=b"]:
            assert (await console.get(f"/queues?{query}")).status == 400


class TestAudit:
    @pytest.fixture
    async def written(self, console: LiveConsole) -> LiveConsole:
        """Return a console with a line per second for q0 to q5, by two users in turn; q3's is a minor one."""
        await console.tools.initialise()
        link, keys = console.tools.registry.link, console.tools.registry.keys
        for number in range(6):
            who, action = ("ann", "queue.put") if number % 2 else ("Bob", "dead.purge")
            entry = AuditEntry(who, "admin", "10.0.0.1", action, f"q{number}", "done")
            results = [part for name in audit.NAMES for part in (name, getattr(entry, name))]
            key = keys.audit_minor if number == 3 else keys.audit
            await link.call("XADD", key, f"{1000 * (number + 1)}-7", *results)
        return console

    @pytest.mark.parametrize("limit", [1, 2, 500])
    async def test_some(self, written: LiveConsole, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Check that pages have no duplicates or omissions, for any number of lines that a page reads."""
        monkeypatch.setattr(audit, "SCAN_LIMIT", limit)
        for query, targets in [
            ("who=ann", ["q5", "q3", "q1"]),
            ("who=bo", ["q4", "q2", "q0"]),
            ("action=purge", ["q4", "q2", "q0"]),
            ("target=Q3", ["q3"]),
            ("target=q&who=ann&action=queue.", ["q5", "q3", "q1"]),
            ("target=q1&who=bob", []),
            ("who=unknown", []),
        ]:
            assert await _targets(written, f"{query}&limit=2") == targets, query

    async def test_by_time(self, written: LiveConsole) -> None:
        """Check that `from` is inclusive and `to` exclusive."""
        second, fourth = moment(2000), moment(4000)
        assert await _targets(written, f"from={second}") == ["q5", "q4", "q3", "q2", "q1"]
        assert await _targets(written, f"to={fourth}") == ["q2", "q1", "q0"]
        assert await _targets(written, f"to={moment(4001)}&limit=1") == ["q3", "q2", "q1", "q0"]
        assert await _targets(written, f"from={second}&to={fourth}&limit=1") == ["q2", "q1"]
        assert await _targets(written, f"from={second}&to={fourth}&who=ann") == ["q1"]
        assert await _targets(written, "from=1970-01-01T03:00:05%2B03:00") == ["q5", "q4"]
        assert await _targets(written, "to=1969-01-01T00:00:00Z") == []
        last = (await written.found("/audit?limit=1"))["next"]
        page_of_before = await written.found(f"/audit?to={fourth}&cursor={last}")
        assert [line["target"] for line in page_of_before["items"]] == ["q2", "q1", "q0"]

    async def test_invalid_filters(self, console: LiveConsole) -> None:
        for query in ["from=yesterday", "to=2026-01-01T00:00:00", "from=5", "who=a&who=b"]:
            assert (await console.get(f"/audit?{query}")).status == 400

"""Test the metrics of the analytics job's report."""

from __future__ import annotations

from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.reports import NOW_MS, report
from tests.servers import Server, eventually
from tests.store.desk import Desk

PREFIX = "penstock_report_"
KEY = "ps:{registry}:report"


def test_operator_exports_the_report(new_operator: NewOperator, keeper: Keeper, store: Server) -> None:
    async def nothing(_desk: Desk) -> None:
        pass

    keeper.do(nothing, set_up=True)
    operator = new_operator(sweep_s=1).ready()
    assert f"\n{PREFIX}time_seconds " not in operator.page("metrics")[1]
    store.call("SET", KEY, b"%d " % NOW_MS + report().encode())
    eventually(lambda: operator.metric(f"{PREFIX}time_seconds") == NOW_MS / 1000)
    assert operator.metric(f"{PREFIX}deaths", reason="attempts") == 9
    store.call("SET", KEY, '1 {"version": 7}')
    eventually(lambda: operator.events("report_unreadable"))
    eventually(lambda: f"\n{PREFIX}time_seconds " not in operator.page("metrics")[1])
    store.call("SET", KEY, b"%d " % NOW_MS + report().encode())
    eventually(lambda: operator.metric(f"{PREFIX}time_seconds") == NOW_MS / 1000)
    assert len(operator.events("report_unreadable")) == 1
    store.kill9()
    eventually(lambda: operator.metric("penstock_operator_store_up") == 0)
    assert operator.metric(f"{PREFIX}time_seconds") == NOW_MS / 1000
    store.restart()

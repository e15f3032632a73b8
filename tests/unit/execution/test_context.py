"""A worker's context keeps the data of as many customers as their files allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuning import TuneRunner
from tuning.data.customers import Customer
from tuning.execution.context import WorkerContext
from tuning.runs.begin import begin


@pytest.mark.parametrize(("kept_bytes", "reads"), [(0.0, "abcac"), (250.0, "abca"), (1e9, "abc")])
def test_customers_used_last_are_not_read_again(tmp_path: Path, kept_bytes: float, reads: str) -> None:
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("x\n" + "12345678\n" * 11)  # 101 bytes
    runner = TuneRunner(
        data=str(tmp_path / "*.csv"), objective=len, search_space={"x": {"type": "float", "low": 0, "high": 1}}
    )
    owned = begin(runner.definition, str(tmp_path / "run"))
    owned.lease.release()
    context = WorkerContext.open(owned.directory, owned.run, owned.plan.spec, kept_bytes=kept_bytes)
    seen: list[str] = []
    read = context.loader.read

    def noted(customer: Customer) -> object:
        seen.append(customer.id)
        return read(customer)

    object.__setattr__(context.customers, "rows", noted)
    customers = {study.customer.id: study.customer for study in owned.plan.studies}
    for name in "abccac":
        context.data(customers[name])
    assert "".join(seen) == reads

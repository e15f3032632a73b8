"""A worker's context: it keeps the data of as many customers as their files allow, and reads what is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuning import TuneRunner
from tuning.data.customers import Customer
from tuning.errors import CustomerError
from tuning.execution.worker import WorkerContext
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


def sizes(config: dict[str, float], files: tuple[str, ...]) -> float:
    return float(sum(Path(name).stat().st_size for name in files))


def test_an_objective_of_files_has_their_paths_and_nobody_reads_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\x00 no table")
    runner = TuneRunner(
        data=str(tmp_path / "*.csv"),
        objective=sizes,
        search_space={"x": {"type": "float", "low": 0, "high": 1}},
        trials=1,
        mlflow=False,
    )
    (record,) = runner.run(tmp_path / "run", in_process=True, progress=False).trial_records
    assert (record.state, record.score) == ("finished", 10.0)


def test_a_customer_within_a_table_has_no_files_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "all.csv").write_text("shop,x\n" + "a,1\nb,2\n" * 9)
    runner = TuneRunner(
        data=str(tmp_path / "all.csv"),
        by="shop",
        objective=sizes,
        search_space={"x": {"type": "float", "low": 0, "high": 1}},
        trials=1,
        mlflow=False,
    )
    owned = begin(runner.definition, str(tmp_path / "run"))
    owned.lease.release()
    context = WorkerContext.open(owned.directory, owned.run, owned.plan.spec)
    with pytest.raises(CustomerError, match=r"rows are in the same file as others'; take `data` instead"):
        context.data(owned.plan.studies[0].customer)

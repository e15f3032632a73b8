"""Which studies are spread and which are packed, what a plan says of that, and how a manifest overrules it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders import SPACE, valley
from shown_output import codes_of

from tuning import TuneRunner
from tuning.errors import DataError, PlanError
from tuning.notes import PlanCode
from tuning.planning import placement
from tuning.planning.placement import tail
from tuning.planning.run_plan import Plan
from tuning.runs.begin import begin, resume_run
from tuning.runs.plan_file import read_batch, read_plan, read_spread
from tuning.study.study import PACKED, SPREAD


@pytest.fixture(autouse=True)
def _rows_of_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the shares below are what they are, however this is measured."""
    monkeypatch.setattr("tuning.study.study.TRIAL_ROWS", 2000)


def rows_of(folder: Path, **customers: int) -> str:
    """A table of customers with so many rows each; its path."""
    keys = np.repeat(list(customers), list(customers.values()))
    x = np.arange(len(keys)) % 97.0
    pq.write_table(pa.table({"customer": keys, "x": x, "y": x * 2}), folder / "rows.parquet")
    return str(folder / "rows.parquet")


def small(count: int, rows: int = 50) -> dict[str, int]:
    return {f"c{number:03d}": rows for number in range(count)}


def runner(data: object, **fields: Any) -> TuneRunner:
    given: dict[str, Any] = {"by": "customer", "target": "y", "task": "regression", "search_space": "ridge"}
    return TuneRunner(**{**given, "data": data, "trials": 4, "slots": 4, "mlflow": False, **fields})


def spread(plan: Plan) -> list[str]:
    return [study.id for study in plan.spread]


def test_a_giant_is_spread_and_a_hundred_small_customers_are_packed(tmp_path: Path) -> None:
    plan = runner(rows_of(tmp_path, giant=150_000, **small(100))).plan()
    assert spread(plan) == ["giant"]
    assert sorted(position for batch in plan.batches for position in batch) == list(range(100))  # and 100 is the giant
    text = plan.describe()
    assert (
        "placement   'giant': spread, each trial a Tune trial, 4 at once; 100 others: packed, 32 batches on 4 slots; "
        "all in one run of Ray Tune"
    ) in text
    assert plan.to_dict()["placement"] == "packed, spread"


@pytest.mark.parametrize(
    ("customers", "expected"),
    [
        ({"giant": 150_000, **small(300)}, []),  # a fifth of the work: others keep the slots busy meanwhile
        ({"one": 30_000, "other": 28_000, **small(20)}, ["one", "other"]),
        ({"one": 60_000, "other": 30_000, "third": 30_000, "fourth": 30_000}, ["one"]),  # others: a fifth each
        ({"giant": 20_000, **small(3)}, []),  # its trials are too short to be worth it
        (small(2), []),
    ],
)
def test_it_is_the_tail_that_is_spread(tmp_path: Path, customers: dict[str, int], expected: list[str]) -> None:
    assert spread(runner(rows_of(tmp_path, **customers)).plan()) == expected


def test_equal_studies_are_the_tail_where_there_are_fewer_than_slots() -> None:
    for studies in (1, 3, 4, 7, 9):
        assert tail(np.full(studies, 1 / studies), slots=4).any() == (studies < 4)


def test_more_trials_are_more_work(tmp_path: Path) -> None:
    data = rows_of(tmp_path, giant=150_000, **small(300))
    (tmp_path / "manifest.yaml").write_text("giant: {trials: 20}")
    assert spread(runner(data, manifest=str(tmp_path / "manifest.yaml")).plan()) == ["giant"]


def test_what_takes_more_memory_than_a_slot_has_is_spread_and_so_many_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = rows_of(tmp_path, giant=20_000, **small(30))
    (size,) = [study.customer.size for study in runner(data).plan().studies if study.id == "giant"]
    trial = placement.TRIAL_BYTES * size
    monkeypatch.setattr(placement, "memory", lambda: 2.5 * trial / placement.SHARE_OF_MEMORY)
    plan = runner(data).plan()
    assert spread(plan) == ["giant"]
    assert plan.at_once == 2


@pytest.mark.parametrize("fields", [{"scheduler": "hyperband"}, {"compare": {"algorithms": ["random", "optuna"]}}])
def test_by_itself_nothing_is_spread_that_pauses_or_is_compared(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert spread(runner(rows_of(tmp_path, giant=40_000, **small(20)), **fields).plan()) == []


@pytest.mark.parametrize(
    ("manifest", "fields", "expected"),
    [
        ("giant: {placement: packed}", {}, []),
        ("c001: {placement: spread}", {"placement": "packed"}, ["c001"]),
        ("c001: {placement: packed}", {"placement": "spread"}, ["c000", "c002", "giant"]),
        ("c001: {placement: spread}", {}, ["c001", "giant"]),
    ],
)
def test_a_manifest_overrules_it_for_a_customer(
    tmp_path: Path, manifest: str, fields: dict[str, Any], expected: list[str]
) -> None:
    (tmp_path / "manifest.yaml").write_text(manifest)
    data = rows_of(tmp_path, giant=40_000, **small(3))
    assert spread(runner(data, manifest=str(tmp_path / "manifest.yaml"), **fields).plan()) == expected


def test_a_column_of_the_manifest_says_it_too(tmp_path: Path) -> None:
    (tmp_path / "manifest.csv").write_text("customer,placement,trials\ngiant,packed,\nc001,spread,3\n")
    data = rows_of(tmp_path, giant=40_000, **small(3))
    plan = runner(data, manifest=str(tmp_path / "manifest.csv")).plan()
    assert spread(plan) == ["c001"]
    (tmp_path / "manifest.csv").write_text("customer,placement\ngiant,somewhere\n")
    with pytest.raises(
        DataError, match=r"customer 'giant': placement: must be 'packed' or 'spread' \(got 'somewhere'\)"
    ):
        runner(data, manifest=str(tmp_path / "manifest.csv")).plan()


@pytest.mark.parametrize(
    ("manifest", "fields", "said"),
    [
        (
            "c001: {placement: spread}",
            {"scheduler": "hyperband"},
            r"^customer 'c001': placement: spread: the scheduler hyperband pauses",
        ),
        ("c001: {search_space: xgboost_ray, placement: packed}", {}, r"^models: several processes .*'xgboost_ray'"),
        ("c001: {search_space: xgboost_ray}", {"scheduler": "hyperband"}, r"scheduler hyperband cannot pause trials"),
    ],
)
def test_what_cannot_be_spread_or_packed_is_refused(
    tmp_path: Path, manifest: str, fields: dict[str, Any], said: str
) -> None:
    (tmp_path / "manifest.yaml").write_text(manifest)
    data = rows_of(tmp_path, **small(3))
    with pytest.raises(PlanError, match=said):
        runner(data, manifest=str(tmp_path / "manifest.yaml"), **fields).plan()


def test_several_processes_train_the_trials_of_one_customer_only(tmp_path: Path) -> None:
    (tmp_path / "manifest.yaml").write_text("giant: {search_space: xgboost_ray, resources: {cpus: 0.5}}")
    data = rows_of(tmp_path, giant=40_000, **small(30))
    plan = runner(data, manifest=str(tmp_path / "manifest.yaml")).plan()
    assert spread(plan) == ["giant"]
    assert plan.at_once == 1
    assert PlanCode.SMALL_WITH_WORKERS not in codes_of(plan)
    for_all = runner(data, search_space="xgboost_ray").plan()
    (note,) = [note for note in for_all.notes if note.code is PlanCode.SMALL_WITH_WORKERS]
    assert note.values == {"small": 30, "studies": 31, "rows": 25_000}


@pytest.mark.parametrize(("manifest", "noted"), [("c001: {trials: 3}", 3), ("c001: {search_space: xgboost_ray}", 2)])
def test_actors_for_customers_who_are_all_small_are_noted_unless_they_are_for_this_very_one(
    tmp_path: Path, manifest: str, noted: int
) -> None:
    (tmp_path / "manifest.yaml").write_text(manifest)
    data = rows_of(tmp_path, **small(3))
    plan = runner(data, search_space="xgboost_ray", manifest=str(tmp_path / "manifest.yaml")).plan()
    assert [note.values["small"] for note in plan.notes if note.code is PlanCode.SMALL_WITH_WORKERS] == [noted]
    for_one = runner(data, manifest=str(tmp_path / "manifest.yaml")).plan()
    assert PlanCode.SMALL_WITH_WORKERS not in codes_of(for_one)


@pytest.mark.long
def test_the_plan_says_the_range_of_trials_where_customers_have_numbers_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "manifest.yaml").write_text("c001: {trials: 9}")
    data = rows_of(tmp_path, **small(3))
    assert "trials      12 (4 per study)" in runner(data).plan().describe()
    text = runner(data, manifest=str(tmp_path / "manifest.yaml")).plan().describe()
    assert "trials      17 (4 to 9 per study)" in text


def test_the_plan_file_has_it_for_each_study_and_a_resume_keeps_it(tmp_path: Path) -> None:
    data = rows_of(tmp_path, giant=40_000, **small(10))
    owned = begin(runner(data).definition, tmp_path / "run")
    owned.lease.release()
    recorded = read_plan(owned.directory, owned.term)
    assert {study.id: study.placement for study in recorded.studies} == {
        **dict.fromkeys(small(10), PACKED),
        "giant": SPREAD,
    }
    assert [study.id for study in read_spread(owned.directory, owned.term).studies] == ["giant"]
    of_batches = [s.id for n in range(recorded.batches) for s in read_batch(owned.directory, owned.term, n).studies]
    assert sorted(of_batches) == sorted(small(10))
    again = resume_run(owned.directory)
    again.lease.release()
    assert spread(again.plan) == ["giant"]
    here = resume_run(owned.directory, in_process=True)
    here.lease.release()
    assert here.plan.placement == PACKED
    more = rows_of(tmp_path, giant=40_000, **small(10), titan=90_000)
    added = resume_run(owned.directory, runner(more).definition)
    added.lease.release()
    assert spread(added.plan) == ["titan"]  # the giant stays where it was


def test_trials_of_a_function_are_of_unknown_length() -> None:
    fields: dict[str, Any] = {"search_space": SPACE, "metric": "loss", "mode": "min", "slots": 4}
    assert spread(TuneRunner(objective=valley, **fields, name="it").plan()) == ["it"]
    assert spread(TuneRunner(objective=valley, **{**fields, "slots": 1}).plan()) == []

"""What a user sees in MLflow: parents, children, params, stepped metrics, states, the leaderboard row."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import reason
from mlflow import MlflowClient
from mlflow_records import RUN, STARTED, by_name, runs_in, study, trial, without_bulk, write_part

from tuning.records.schema import FAILED, NO_MODEL, POOL_STUDY, QUARANTINED, STOPPED, Record, StepRecord
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copier import Copier
from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.settings import Selection
from tuning.tracking.stores import open_store
from tuning.tracking.stores.client_store import ClientStore
from tuning.tracking.stores.database import client
from tuning.tracking.stores.sql_store import BulkStore

SEARCH = TrackedSearch("churn", RUN)

Copy = Callable[..., Copier]

BY_CLIENT = {"tuning.key", "tuning.search"}  # tags by which a run is found where a server chooses its id


@pytest.fixture(params=["bulk", "client"])
def copy(request: pytest.FixtureRequest, mlflow_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    """Copies records, each list as one part, by either kind of store; both must give the same."""
    if request.param == "client":
        without_bulk(monkeypatch)
    directory = RunDirectory(str(tmp_path / "run"))

    def run(*parts: list[Record], record_trials: str = "all") -> Copier:
        opened = open_store(mlflow_database, SEARCH, str(tmp_path / "mlruns"))
        assert isinstance(opened, ClientStore) == (request.param == "client")
        copier = Copier(directory, SEARCH, Selection.parse(record_trials), lambda: opened)
        for number, records in enumerate(parts):
            copier.add(write_part(directory, f"part-{number}", *records))
        while not copier.idle:
            copier.work()
        copier.finish()
        return copier

    return run


def history(uri: str, run: Any, key: str) -> list[tuple[int, float, int]]:
    values = client(uri).get_metric_history(run.info.run_id, key)
    return sorted((value.step, value.value, value.timestamp) for value in values)


def test_a_trial_with_its_steps(copy: Copy, mlflow_database: str) -> None:
    copy([trial("acme", 17)])
    run = by_name(mlflow_database)["acme/0017"]
    assert run.info.status == "FINISHED"
    assert run.info.start_time == int((STARTED + 17) * 1000)
    assert run.info.end_time == run.info.start_time + 500
    assert run.data.params == {"family": "xgboost", "model.max_depth": "20", "model.eta": "0.1", "subsample": "0.8"}
    assert [(step, value) for step, value, _ in history(mlflow_database, run, "roc_auc")] == [
        (1, pytest.approx(0.697)),
        (2, pytest.approx(0.707)),
        (3, pytest.approx(0.717)),
    ]
    assert [(step, value) for step, value, _ in history(mlflow_database, run, "log_loss")] == [
        (1, pytest.approx(0.49)),
        (2, pytest.approx(0.48)),
        (3, pytest.approx(0.47)),
    ]
    assert run.data.metrics["score"] == pytest.approx(0.717)
    assert run.data.metrics["log_loss"] == pytest.approx(0.47)
    assert run.data.metrics["fit_seconds"] == pytest.approx(0.25)
    tags = {name.removeprefix("tuning."): value for name, value in run.data.tags.items()}
    assert tags["customer"] == "acme"
    assert tags["algorithm"] == "optuna"
    assert tags["scheduler"] == "asha"
    assert tags["seed"] == "1017"
    assert tags["run"] == RUN


@pytest.mark.parametrize("record_trials", ["all", "top:1", "none"])
def test_the_pool_is_a_run_of_its_own_and_once(copy: Copy, mlflow_database: str, record_trials: str) -> None:
    pool = replace(trial("", 0), study=POOL_STUDY, family="catboost", config={"model": "catboost", "iterations": 600})
    for _ in range(2):
        done = copy([pool], [trial("acme", 0)], [study("acme", 1)], record_trials=record_trials)
        assert done.status.pending == 0
    (run,) = (run for run in runs_in(mlflow_database) if run.data.tags.get("tuning.kind") == "pool")
    assert (run.info.run_name, run.info.status) == ("pool", "FINISHED")
    assert run.data.params["iterations"] == "600"
    assert run.data.metrics["score"] == pytest.approx(pool.score)
    assert not {"mlflow.parentRunId", "tuning.customer", "tuning.study"} & {*run.data.tags}
    assert {run.info.run_name for run in runs_in(mlflow_database)} >= {"acme", "pool"}


def test_states_and_reasons(copy: Copy, mlflow_database: str) -> None:
    stopped = trial("acme", 1, state=STOPPED, reason=reason("asha: below the 0.33 quantile at step 1"))
    why: dict[str, Any] = {"reason": reason("ValueError: boom"), "error": "Traceback …"}
    failed = trial("acme", 2, state=FAILED, score=None, steps=[], **why)
    copy([trial("acme", 0), stopped, failed])
    runs = by_name(mlflow_database)
    assert [runs[f"acme/000{n}"].info.status for n in range(3)] == ["FINISHED", "KILLED", "FAILED"]
    assert runs["acme/0001"].data.tags["tuning.reason"].startswith("asha")
    assert runs["acme/0002"].data.tags["tuning.error"].startswith("Traceback")
    assert "score" not in runs["acme/0002"].data.metrics


def test_a_customers_parent_run(copy: Copy, mlflow_database: str) -> None:
    copy([trial("acme", n) for n in range(3)], [study("acme", 3)])
    runs = by_name(mlflow_database)
    parent = runs["acme"]
    assert parent.info.status == "FINISHED"
    assert parent.data.params["model.max_depth"] == "5"
    assert parent.data.params["family"] == "xgboost"
    wanted = {
        "cv_score": 0.8,
        "test_score": 0.79,
        "baseline_cv_score": 0.75,
        "baseline_test_score": 0.74,
        "gain": 0.05,
        "trials": 3,
        "stopped": 1,
        "failed": 0,
    }
    assert {name: parent.data.metrics[name] for name in wanted} == pytest.approx(wanted)
    row = json.loads(parent.data.tags["tuning.leaderboard"])
    assert row["customer"] == "acme"
    assert row["test_score"] == pytest.approx(0.79)
    assert parent.data.tags["tuning.status"] == "ok"
    winners = [run.info.run_name for run in runs.values() if run.data.tags.get("tuning.best") == "true"]
    assert winners == ["acme/0002"]
    children = [run for run in runs.values() if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert len(children) == 3


@pytest.mark.parametrize("status", [NO_MODEL, QUARANTINED])
def test_a_customer_without_a_model_has_a_reason(copy: Copy, mlflow_database: str, status: str) -> None:
    nothing = dict.fromkeys(("family", "trial", "best_step", "config", "cv_score", "test_score", "gain"))
    copy([study("acme", 0, status=status, reason=reason("only one class"), **nothing)])
    run = by_name(mlflow_database)["acme"]
    assert run.info.status == "FAILED"
    assert run.data.tags["tuning.reason"] == "only one class"
    assert "only one class" in run.data.tags["mlflow.note.content"]
    assert run.data.params == {}


def test_numbers_that_are_none(copy: Copy, mlflow_database: str) -> None:
    steps = [StepRecord(1, math.nan), StepRecord(2, math.inf), StepRecord(3, -math.inf)]
    copy([trial("acme", 0, steps=steps, score=math.nan, metrics={})])
    run = by_name(mlflow_database)["acme/0000"]
    values = [value for _, value, _ in history(mlflow_database, run, "roc_auc")]
    assert math.isnan(values[0])
    assert values[1:] == [1.7976931348623157e308, -1.7976931348623157e308]
    assert math.isnan(run.data.metrics["score"])


def test_changing_hyperparameters_are_metrics_with_a_step(copy: Copy, mlflow_database: str) -> None:
    schedule = json.dumps([[0, {"lr": 0.1, "opt": "sgd"}], [2, {"lr": 0.02, "opt": "adam"}]])
    copy([trial("acme", 0, config={"lr": 0.02, "opt": "adam", "depth": 3}, schedule=schedule, lineage="[3]")])
    run = by_name(mlflow_database)["acme/0000"]
    assert run.data.params == {"family": "xgboost", "lr": "0.02", "opt": "adam", "depth": "3"}
    assert [(step, value) for step, value, _ in history(mlflow_database, run, "hp.lr")] == [(0, 0.1), (2, 0.02)]
    assert run.data.tags["tuning.schedule"] == schedule
    assert run.data.tags["tuning.lineage"] == "[3]"


def test_secrets_in_reasons_are_masked(copy: Copy, mlflow_database: str) -> None:
    text = "s3://me:hunter2@bucket/x?secret_key=hunter3 cannot be read"
    copy([trial("acme", 0, state=FAILED, reason=reason(text), error=f"Traceback: {text}")])
    tags = by_name(mlflow_database)["acme/0000"].data.tags
    assert not [value for value in tags.values() if "hunter" in value]
    assert "bucket/x" in tags["tuning.reason"]


def test_awkward_content_arrives(copy: Copy, mlflow_database: str) -> None:
    config = {f"p{n}": n for n in range(150)} | {"a(b)": "x" * 9000, "nul": "a\0b", "text": "tab\tline\nüß\\N"}
    steps = [StepRecord(n, 0.5 + n / 10_000, n / 1000, {"loss (mean)": 1 / n}) for n in range(1, 1201)]
    name = "Müller & Söhne/Öl\t'\"; DROP TABLE runs"
    copier = copy([trial(name, 0, config=config, steps=steps)], [study(name, 1, config=config)])
    assert copier.status.rejected == 0
    runs = by_name(mlflow_database)
    run = runs[f"{name}/0000"]
    assert len(run.data.params) == 154
    assert len(run.data.params["a_b_"]) == 6000
    assert run.data.params["text"] == "tab\tline\nüß\\N"
    assert len(history(mlflow_database, run, "roc_auc")) == 1200
    assert len(history(mlflow_database, run, "loss _mean_")) == 1200
    assert run.data.tags["tuning.customer"] == name
    assert runs[name].data.tags["tuning.best_run"] == SEARCH.id(name, 0)


@pytest.mark.parametrize(("record_trials", "wanted"), [("none", []), ("top:2", [0, 4]), ("top:9", [0, 1, 2, 3, 4])])
def test_record_trials(copy: Copy, mlflow_database: str, record_trials: str, wanted: list[int]) -> None:
    scores = [0.5, 0.6, 0.7, 0.8, 0.9]
    trials: list[Record] = [trial("acme", n, score=scores[n]) for n in range(5)]
    trials[3] = trial("acme", 3, score=0.8, state=STOPPED)
    record = study("acme", 5, trial=0)  # the winner need not have the best score of all
    copier = copy(trials[3:], [record], trials[:3], record_trials=record_trials)
    assert copier.status.pending == 0
    runs = by_name(mlflow_database)
    assert sorted(runs) == ["acme", *(f"acme/000{n}" for n in wanted)]
    assert runs["acme"].info.status == "FINISHED"


def test_the_single_best_trials_come_with_runs_that_take_little_room(copy: Copy, mlflow_database: str) -> None:
    config = {"model": "xgboost", "max_depth": 5}
    trials: list[Record] = [trial("acme", n, config=config) for n in range(3)]
    nothing = dict.fromkeys(("trial", "config", "family", "gain"))
    failed = study("beta", 0, status=NO_MODEL, reason=reason("too few rows"), **nothing)
    copy(trials, [study("acme", 3, trial=2), failed], record_trials="top:1")
    runs = by_name(mlflow_database)
    assert sorted(runs) == ["acme", "acme/0002", "beta"]
    ours = {
        name: {key for key in run.data.tags if not key.startswith("mlflow.") and key not in BY_CLIENT}
        for name, run in runs.items()
    }
    assert ours["acme"] == {"tuning.kind", "tuning.run", "tuning.customer"}
    assert ours["acme/0002"] == {"tuning.customer"}
    assert ours["beta"] == {"tuning.kind", "tuning.run", "tuning.customer", "tuning.reason"}
    assert (runs["acme"].data.params, runs["acme/0002"].data.params) == ({"family": "xgboost"}, {"max_depth": "5"})
    assert set(runs["acme"].data.metrics) == {"cv_score", "test_score", "gain", "trials"}
    assert set(runs["acme/0002"].data.metrics) == {"score"}
    assert runs["acme/0002"].data.tags["mlflow.parentRunId"] == runs["acme"].info.run_id
    assert runs["beta"].info.status == "FAILED"


def test_top_waits_for_the_end_of_a_study(copy: Copy, mlflow_database: str) -> None:
    copier = copy([trial("acme", n) for n in range(3)], [trial("beta", 0)], [study("beta", 1)], record_trials="top:1")
    assert copier.status.pending == 1
    assert sorted(by_name(mlflow_database)) == ["acme", "beta", "beta/0000"]
    assert by_name(mlflow_database)["acme"].info.status == "RUNNING"


def test_parts_of_earlier_batches_are_done_when_their_study_has_ended(mlflow_database: str, tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    opened = open_store(mlflow_database, SEARCH, str(tmp_path / "mlruns"))
    copier = Copier(directory, SEARCH, Selection.parse("top:1"), lambda: opened)
    records: list[Record] = [*(trial("acme", n) for n in range(3)), study("acme", 3)]
    for number, record in enumerate(records):
        assert copier.status.pending == min(number, 1)
        copier.add(write_part(directory, f"part-{number}", record))
        copier.work()
    assert copier.status.pending == 0


@pytest.mark.parametrize("clock", [0.0, -86_400.0], ids=["clock as it was", "clock set back"])
def test_a_study_that_goes_on_with_more_trials(copy: Copy, mlflow_database: str, clock: float) -> None:
    why: dict[str, Any] = {"status": NO_MODEL, "reason": reason("nothing finished")}
    first = study("acme", 2, trial=0, config={"old": 1, "depth": 3}, **why)
    later: dict[str, Any] = {"started": first.started + clock, "seconds": 99.5, "test_score": 0.9, "gain": None}
    last = study("acme", 4, trial=3, config={"depth": 7, "eta": 0.5}, **later)
    begun: list[Record] = [trial("acme", n) for n in range(2)]
    more: list[Record] = [trial("acme", n) for n in range(2, 4)]
    copy(begun, [first])
    assert by_name(mlflow_database)["acme"].data.params["old"] == "1"
    for order in ([begun, [first], more, [last]], [[last], [first], more, begun]):
        copy(*order)
        runs = by_name(mlflow_database)
        assert sorted(runs) == ["acme", *(f"acme/000{n}" for n in range(4))]
        parent = runs["acme"]
        assert parent.info.status == "FINISHED"
        assert parent.data.params == {"family": "xgboost", "depth": "7", "eta": "0.5"}
        assert parent.data.metrics["test_score"] == pytest.approx(0.9)
        assert "mlflow.note.content" not in parent.data.tags
        best = [name for name, run in runs.items() if run.data.tags.get("tuning.best") == "true"]
        assert best == ["acme/0003"]
        assert {run.data.tags["mlflow.parentRunId"] for name, run in runs.items() if "/" in name} == {
            parent.info.run_id
        }


def test_a_study_that_goes_on_has_no_more_trials_in_mlflow_than_its_best(copy: Copy, mlflow_database: str) -> None:
    first: list[list[Record]] = [[trial("acme", n, score=0.7 + n / 100) for n in range(3)], [study("acme", 3, trial=2)]]
    later: list[list[Record]] = [[trial("acme", n, score=0.9 + n / 100) for n in (3, 4)], [study("acme", 5, trial=4)]]
    copy(*first, record_trials="top:2")
    assert sorted(by_name(mlflow_database)) == ["acme", "acme/0001", "acme/0002"]
    copy(*first, *later, record_trials="top:2")
    assert sorted(by_name(mlflow_database)) == ["acme", "acme/0003", "acme/0004"]


def test_a_study_whose_data_had_changed_is_shown_as_it_is_now(copy: Copy, mlflow_database: str) -> None:
    copy([trial("acme", n) for n in range(3)], [study("acme", 3, trial=2)])
    later = STARTED + 3600
    other: dict[str, Any] = {"started": later, "score": 0.5, "config": {"other": 1}, "steps": [StepRecord(1, 0.5)]}
    again: list[Record] = [trial("acme", n, **other) for n in range(3)]
    copy(again, [study("acme", 3, trial=0, started=later)])
    copy(again, [study("acme", 3, trial=0, started=later)])  # and a second copy finds nothing to do
    runs = by_name(mlflow_database)
    assert sorted(runs) == ["acme", *(f"acme/000{n}" for n in range(3))]
    for number in range(3):
        run = runs[f"acme/000{number}"]
        assert run.data.params["other"] == "1"
        assert "subsample" not in run.data.params
        assert run.data.metrics["score"] == 0.5
        assert history(mlflow_database, run, "roc_auc") == [(1, 0.5, history(mlflow_database, run, "roc_auc")[0][2])]
        assert run.data.tags["mlflow.parentRunId"] == runs["acme"].info.run_id
    assert [name for name, run in runs.items() if run.data.tags.get("tuning.best") == "true"] == ["acme/0000"]
    fewer: dict[str, Any] = {**other, "started": later + 3600}
    copy([trial("acme", n, **fewer) for n in range(2)], [study("acme", 2, trial=0, started=later + 3600)])
    runs = by_name(mlflow_database)
    assert sorted(runs) == ["acme", "acme/0000", "acme/0001"]
    assert runs["acme"].data.metrics["trials"] == 2
    later += 7200
    copy([trial("acme", n, **{**other, "started": later}) for n in range(3)], [study("acme", 3, started=later)])
    assert sorted(by_name(mlflow_database)) == ["acme", *(f"acme/000{n}" for n in range(3))]
    assert by_name(mlflow_database)["acme/0002"].info.lifecycle_stage == "active"
    copy([study("acme", 0, status=NO_MODEL, reason=reason("no rows"), trial=None, started=later + 3600)])
    assert list(by_name(mlflow_database)) == ["acme"]
    assert by_name(mlflow_database)["acme"].data.tags["tuning.status"] == NO_MODEL


def test_studies_of_one_customer_stay_apart(copy: Copy, mlflow_database: str) -> None:
    changes: dict[str, Any] = {"customer": "acme"}
    copy([trial("acme:optuna:0", 0, **changes), trial("s-2", 0, **changes)], [study("s-2", 1, **changes)])
    assert sorted(by_name(mlflow_database)) == ["acme s-2", "acme s-2/0000", "acme:optuna:0", "acme:optuna:0/0000"]


def test_trials_of_one_customer_are_written_side_by_side(
    mlflow_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a server's answers are waited for together. The barrier breaks when no second trial comes."""
    without_bulk(monkeypatch)
    directory = RunDirectory(str(tmp_path / "run"))
    opened = open_store(mlflow_database, SEARCH, str(tmp_path / "mlruns"))
    copier = Copier(directory, SEARCH, Selection(None), lambda: opened)
    copier.add(write_part(directory, "a", trial("acme", 0)))
    copier.work()
    both, create = threading.Barrier(2, timeout=20), opened.client.create_run
    monkeypatch.setattr(opened.client, "create_run", lambda *args: (both.wait(), create(*args))[1])
    copier.add(write_part(directory, "b", trial("acme", 1), trial("acme", 2)))
    copier.work()
    assert sorted(by_name(mlflow_database)) == ["acme", "acme/0000", "acme/0001", "acme/0002"]


def test_either_store_completes_what_the_other_began(
    mlflow_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    first = write_part(directory, "a", *(trial("acme", n) for n in range(2)))
    second = write_part(directory, "b", *(trial("acme", n) for n in range(4)))
    third = write_part(directory, "c", study("acme", 4))

    def copy_with(kind: type[BulkStore | ClientStore], *parts: str, run: str = RUN) -> None:
        with monkeypatch.context() as changed:
            if kind is ClientStore:
                without_bulk(changed)
            opened = open_store(mlflow_database, TrackedSearch("churn", run), str(tmp_path / "mlruns"))
        assert isinstance(opened, kind)
        copier = Copier(directory, TrackedSearch("churn", run), Selection(None), lambda: opened)
        for part in parts:
            copier.add(part)
        copier.work()

    copy_with(ClientStore, first)
    copy_with(BulkStore, first, second, third)
    assert len(by_name(mlflow_database)) == 5
    copy_with(BulkStore, first, run="other")
    copy_with(ClientStore, first, second, third, run="other")
    names = [run.info.run_name for run in MlflowClient(mlflow_database).search_runs(["1"])]
    assert len(names) == 10
    assert len(set(names)) == 5


def test_a_run_that_mlflow_refuses_is_told_and_keeps_nobody_back(
    mlflow_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    opened = open_store(mlflow_database, SEARCH, None)
    copier = Copier(directory, SEARCH, Selection(None), lambda: opened)
    bad = trial("acme", 1, steps=[StepRecord(2**64, 0.5)])  # does not fit into a database's integer
    monkeypatch.setattr("tuning.tracking.copier.decode", lambda _: [trial("acme", 0), bad, trial("acme", 2)])
    copier.add(write_part(directory, "a", trial("acme", 0)))
    copier.work()
    assert copier.status.rejected == 1
    assert "acme/0001" in str(copier.status.error)
    assert sorted(by_name(mlflow_database)) == ["acme", "acme/0000", "acme/0002"]


def test_a_deleted_experiment_is_said_with_the_way_out(mlflow_database: str) -> None:
    found = client(mlflow_database)
    found.delete_experiment(found.create_experiment("churn"))
    with pytest.raises(Exception, match="mlflow experiments restore"):
        open_store(mlflow_database, SEARCH, None)

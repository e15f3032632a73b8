"""Trials that several processes train: what comes of them is what one process would make, and nothing of them stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from s3_server import Bucket

from benchmarks.lost_actor import run
from tuning import RunResult, TuneRunner
from tuning.basics.timing import USUAL, Timing
from tuning.errors import PlanError
from tuning.models.worker_group import RESTARTS, ActorGroup


def frame(rows: int = 400) -> pd.DataFrame:
    """Numbers of few values: with more of them than bins, several processes find other candidates for splits."""
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(rows, 3)) * 4) / 4
    colour = rng.choice(["red", "green", "blue"], rows)
    y = 2 * x[:, 0] + x[:, 1] * x[:, 2] + (colour == "red") * 2 + rng.normal(scale=0.2, size=rows)
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(colour=colour, y=np.where(y > 0.6, "yes", "no"))


def search(
    run: Path | str,
    model: dict[str, Any],
    *,
    in_process: bool = False,
    timing: Timing = USUAL,
    **fields: Any,
) -> RunResult:
    given: dict[str, Any] = {
        "data": {"one": frame()},
        "target": "y",
        "metric": "neg_log_loss",
        "split": {"folds": 2},
        "models": [{**model, "search_space": {"n_estimators": {"type": "constant", "value": 20}, "max_depth": DEPTHS}}],
        "algorithm": "grid",
        "scheduler": "fifo",
        "ensemble": "none",
        "portfolio": "none",
        "trials": 1,
        "slots": 2,
        "resources": {"cpus": 0.5},
        "mlflow": False,
    }
    runner = TuneRunner(**{**given, **fields})
    runner.timing = timing
    return runner.run(run, progress=False, in_process=in_process)


DEPTHS = {"type": "choice", "values": [3]}
RATES = {"type": "float", "low": 0.1, "high": 0.3, "default": 0.2}


@pytest.mark.parametrize(
    ("model", "where"),
    [
        ("xgboost", "local"),
        pytest.param("xgboost", "s3", marks=pytest.mark.slow),
        pytest.param("xgboost_ray", "local", marks=pytest.mark.slow),
    ],
)
def test_several_processes_make_what_one_makes_and_leave_nothing(
    group_cluster: None, request: pytest.FixtureRequest, tmp_path: Path, model: str, where: str
) -> None:
    folder = str(tmp_path / "group")
    run = folder if where == "local" else request.getfixturevalue("bucket").uri("runs/group", credentials=True)
    found = search(run, {"estimator": model, "actors": 2, "cpus_per_actor": 0.5})
    alone = search(tmp_path / "alone", {"estimator": "xgboost"}, in_process=True)
    (trial,), (expected,) = found.trial_records, alone.trial_records
    assert trial.state == expected.state == "finished", str(trial.reason)
    assert trial.config["actors"] == 2
    assert [step.score for step in trial.steps] == pytest.approx([step.score for step in expected.steps], rel=1e-6)
    board, other = (each.leaderboard().iloc[0] for each in (found, alone))
    assert board["test_score"] == pytest.approx(other["test_score"], rel=1e-6)
    assert board["model"] == model
    rows = frame()
    said, wanted = (each.model("one").predict_proba(rows) for each in (found, alone))
    np.testing.assert_allclose(said, wanted, rtol=1e-5)
    assert list(found.directory.list("shards")) == []


def test_actors_of_xgboost_ray_make_what_one_process_makes(group_cluster: None) -> None:
    found = run("xgboost_ray", ActorGroup.of({"actors": 2, "cpus_per_actor": 0.5}), rows=400, rounds=20)
    assert (found.steps, found.starts, found.actors) == ((10, 20), (0,), 2)
    assert found.distance < 1e-5


def test_xgboost_ray_is_refused_where_its_actors_cannot_read(group_cluster: None, bucket: Bucket) -> None:
    with pytest.raises(PlanError, match=r"must be in a folder that all nodes share; give one, or take `xgboost`"):
        search(bucket.uri("runs/group", credentials=True), {"estimator": "xgboost_ray", "cpus_per_actor": 0.5})


@pytest.mark.slow
def test_a_giant_for_which_no_machine_comes_ends_with_a_reason_and_the_others_have_models(
    group_cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "there:6379")  # where a machine may come; this process has its Ray already
    frame().to_csv(tmp_path / "rows.csv", index=False)
    one, space = str(tmp_path / "rows.csv"), {"model": "xgboost", "actors": 4, "max_depth": 3}
    constants = {name: {"type": "constant", "value": value} for name, value in space.items()}
    data = {"giant": {"path": one, "search_space": constants | {"eta": RATES}}, "a": one, "b": one}
    timing = Timing(room_s=1.0)
    found = search(tmp_path / "run", {}, data=data, models=["logistic"], algorithm="random", trials=2, timing=timing)
    board = found.leaderboard().set_index("customer")
    assert dict(board["status"]) == {"giant": "no_model", "a": "ok", "b": "ok"}
    reasons = {str(trial.reason or "") for trial in found.trial_records if trial.customer == "giant"}
    why = (
        "it takes 0.5 CPU and 4 times 1 CPU, for which the machines that are there have no room, and none has joined "
        "them within 1 s; add one, then resume the run with more `trials`"
    )
    assert reasons == {f"the trial: {why}"}
    assert why in board["reason"]["giant"]


# A metric is computed in the trial's own process. So here that is what ends it, or its actors.
METRIC = """
import os, signal, time
from pathlib import Path
import numpy as np
from benchmarks.lost_actor import siblings

CALLS = []
FOLDER = Path({folder!r})

def loss(y, said):
    CALLS.append(1)
    {what}
    return float(np.mean(y != said))

def once(name):
    try:
        open(FOLDER / name, "x").close()
    except FileExistsError:
        return False
    return True

def wait_for(pattern):
    end = time.monotonic() + 300
    while not list(FOLDER.glob(pattern)):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.1)

def note_shards():
    for file in FOLDER.rglob("shards/*/*/*.parquet"):
        with open(FOLDER / "written", "a") as lines:
            print(file, file.stat().st_mtime_ns, file=lines)

def end_actor(model, times, how):
    found = siblings(model)
    if len(CALLS) % 2 == 0 and len(found) >= 2 and any(once(f"ended-{{number}}") for number in range(times)):
        os.kill(found[-1], how)
"""


def metric_that(what: str, folder: Path) -> str:
    (folder / "mine.py").write_text(METRIC.format(what=what, folder=str(folder)))
    return f"{folder}/mine.py:loss"


def of_depths(model: str, rounds: int = 60) -> dict[str, Any]:
    """Fields of a search of two trials."""
    space = {"n_estimators": {"type": "constant", "value": rounds}, "max_depth": {"type": "choice", "values": [2, 3]}}
    entry = {"estimator": model, "actors": 2, "cpus_per_actor": 0.5, "search_space": space}
    return {"models": [entry], "trials": 2, "mode": "min"}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["xgboost", "xgboost_ray"])
def test_trials_are_stopped_go_on_after_their_process_is_killed_and_leave_nothing(
    group_cluster: None, tmp_path: Path, model: str
) -> None:
    rates = {"type": "choice", "values": [0.3, 0.2, 1e-7, 1e-8]}
    space = {"n_estimators": {"type": "constant", "value": 80}, "learning_rate": rates}
    kill = "note_shards(); len(CALLS) == 7 and once('died') and os.kill(os.getpid(), signal.SIGKILL)"
    found = search(
        tmp_path / "run",
        {},
        models=[{"estimator": model, "actors": 2, "cpus_per_actor": 0.5, "search_space": space}],
        metric=metric_that(kill, tmp_path),
        mode="min",
        scheduler={"name": "asha", "grace_period": 1, "reduction_factor": 2},
        trials=4,
        timing=Timing(checkpoint_s=0.0),
    )
    records = found.trial_records
    print([(record.state, record.attempt, len(record.steps), record.reason) for record in records])
    assert (tmp_path / "died").exists()
    assert {record.state for record in records} == {"finished", "stopped"}
    assert sorted(record.attempt for record in records) == [1, 1, 1, 2]
    again = next(record for record in records if record.attempt == 2)
    assert [step.step for step in again.steps] == list(range(1, len(again.steps) + 1))
    written = set((tmp_path / "written").read_text().splitlines())
    assert len(written) == len({line.split()[0] for line in written}) >= 2 * 2  # each file once, by whichever trial


@pytest.mark.slow
def test_a_trial_whose_actors_die_again_and_again_fails_and_its_study_goes_on(
    group_cluster: None, tmp_path: Path
) -> None:
    metric = metric_that(f"end_actor('xgboost', {RESTARTS + 1}, signal.SIGKILL)", tmp_path)
    found = search(tmp_path / "run", {}, **of_depths("xgboost", 300), metric=metric)  # it outlasts them all
    first, second = found.trial_records
    assert first.state == "failed"
    assert f"actors were lost {RESTARTS + 1} times, the last time after" in str(first.reason)
    assert second.state == "finished", second.reason
    assert found.study_records[0].status == "ok"


@pytest.mark.slow
@pytest.mark.timeout(700)
def test_a_last_fit_does_not_wait_for_the_trials_of_others(group_cluster: None, tmp_path: Path) -> None:
    """The place of the trial before it is free; other trials go on, here until the model is there."""
    for name, rows in (("large", 1000), ("small", 200)):  # hold-outs of 200 and 40 rows
        frame(rows).to_csv(tmp_path / f"{name}.csv", index=False)
    data = {name: {"path": f"{tmp_path}/{name}.csv", "trials": n} for name, n in (("large", 1), ("small", 2))}
    fields = of_depths("xgboost", 20)
    fields["models"][0]["cpus_per_actor"] = 0.25  # two trials at once
    metric = metric_that("len(y) > 100 or wait_for('run/models/large/*')", tmp_path)
    found = search(tmp_path / "run", {}, **{**fields, "data": data, "metric": metric})
    assert {(trial.customer, trial.state) for trial in found.trial_records} == {
        ("large", "finished"),
        ("small", "finished"),
    }
    assert set(found.leaderboard()["status"]) == {"ok"}


@pytest.mark.slow
def test_last_fits_for_which_there_is_room_one_after_the_other_all_end(group_cluster: None, tmp_path: Path) -> None:
    """Each takes 1.5 of the two CPUs, and so does each trial."""
    frame(200).to_csv(tmp_path / "rows.csv", index=False)
    fields = {**of_depths("xgboost", 20), "trials": 1, "data": dict.fromkeys("abcd", f"{tmp_path}/rows.csv")}
    found = search(tmp_path / "run", {}, **fields, metric=metric_that("pass", tmp_path))
    assert list(found.leaderboard()["status"]) == ["ok"] * 4


@pytest.mark.slow
@pytest.mark.parametrize(("model", "rounds"), [("xgboost", 60), ("xgboost_ray", 2000)])
def test_an_actor_that_hangs_costs_its_trial_and_nothing_else(
    group_cluster: None, tmp_path: Path, model: str, rounds: int
) -> None:
    """XGBoost-Ray tells steps about once a second, and has trained many by then."""
    metric = metric_that(f"end_actor({model!r}, 1, signal.SIGSTOP)", tmp_path)
    limits = {"trial_seconds": 60}
    found = search(tmp_path / "run", {}, **of_depths(model, rounds), metric=metric, limits=limits)
    first, second = found.trial_records
    assert first.state == "failed"
    assert (
        str(first.reason) == "it took longer than limits.trial_seconds: 60, and it reported no step that could end it"
    )
    assert second.state == "finished", second.reason


@pytest.mark.slow
@pytest.mark.parametrize("recovery", ["warm", "cold", "elastic"])
@pytest.mark.parametrize("model", ["xgboost", "xgboost_ray"])
def test_a_killed_actor_costs_some_rounds_and_no_result(group_cluster: None, model: str, recovery: str) -> None:
    """warm: one actor more than the two there were; cold: two more; elastic: on with one, and with two again."""
    worker_group = ActorGroup.of({"actors": 2, "cpus_per_actor": 0.5, "recovery": recovery})
    rounds = 3_000 if (model, recovery) == ("xgboost", "elastic") else 600  # till the lost one is back
    found = run(model, worker_group, rows=20_000, rounds=rounds, kill_after=2)
    print(model, recovery, found)
    assert found.steps == tuple(range(10, rounds + 1, 10))  # none is told twice, none is missing
    assert found.starts == (4 if recovery == "cold" else 3)
    assert len(found.starts) == (3 if recovery == "elastic" else 2)
    assert all(0 < begun < rounds for begun in found.starts[1:])  # not from the beginning
    # As if nothing had happened, unless rows were missed for a while.
    assert found.distance < (0.5 if (model, recovery) == ("xgboost_ray", "elastic") else 1e-5)


@pytest.mark.slow
def test_a_known_configuration_is_fitted_by_several_processes_again(group_cluster: None, tmp_path: Path) -> None:
    model = {"estimator": "xgboost", "actors": 2, "cpus_per_actor": 0.5}
    first = search(tmp_path / "first", model)
    again = search(tmp_path / "again", model, fixed=first.fixed_configurations())
    (study,) = again.study_records
    assert (study.status, study.trials, study.config["actors"]) == ("ok", 0, 2)
    assert again.trial_records == []
    assert np.array_equal(again.model("one").predict_proba(frame()), first.model("one").predict_proba(frame()))

"""Trials that several processes train: what comes of them is what one process would make, and nothing of them stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from gangs import left_over

from benchmarks.experiments.lost_actor import run
from tuning import RunResult, TuneRunner
from tuning.errors import PlanError
from tuning.models.gang import Gang
from tuning.timing import USUAL, Timing


def frame(rows: int = 400) -> pd.DataFrame:
    """Numbers of few values: with more of them than bins, several processes find other candidates for splits."""
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(rows, 3)) * 4) / 4
    colour = rng.choice(["red", "green", "blue"], rows)
    y = 2 * x[:, 0] + x[:, 1] * x[:, 2] + (colour == "red") * 2 + rng.normal(scale=0.2, size=rows)
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(colour=colour, y=np.where(y > 0.6, "yes", "no"))


def search(
    folder: Path,
    run: str,
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
    return runner.run(folder / run, progress=False, in_process=in_process)


DEPTHS = {"type": "choice", "values": [3]}


@pytest.mark.timeout(240)
def test_several_processes_make_what_one_makes_and_leave_nothing(ray_cluster: None, tmp_path: Path) -> None:
    gang = {"estimator": "xgboost_ray", "actors": 2, "cpus_per_actor": 0.5}
    found = search(tmp_path, "gang", gang)
    assert left_over() == {}
    alone = search(tmp_path, "alone", {"estimator": "xgboost"}, in_process=True)
    (trial,), (expected,) = found.trial_records, alone.trial_records
    assert trial.state == expected.state == "finished", trial.reason
    assert [step.score for step in trial.steps] == pytest.approx([step.score for step in expected.steps], rel=1e-6)
    board, other = (each.leaderboard().iloc[0] for each in (found, alone))
    assert board["test_score"] == pytest.approx(other["test_score"], rel=1e-6)
    assert board["model"] == "xgboost_ray"
    rows = frame()
    said, wanted = (each.model("one").predict_proba(rows) for each in (found, alone))
    np.testing.assert_allclose(said, wanted, rtol=1e-5)
    assert not list((tmp_path / "gang" / "shards").glob("*"))


def test_actors_that_never_have_room_side_by_side_are_refused(ray_cluster: None, tmp_path: Path) -> None:
    with pytest.raises(
        PlanError, match=r"a trial takes 0.5 CPU and 4 actors of 1 CPU; there is no room for all of them"
    ):
        search(tmp_path, "run", {"estimator": "xgboost_ray", "actors": 4})


# A metric is computed in the trial's own process, and here it kills that, once.
KILLS = """
import os, signal
import numpy as np

CALLS = []

def loss(y, said):
    CALLS.append(1)
    if len(CALLS) == 7 and not os.path.exists({died!r}):
        open({died!r}, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return float(np.mean(y != said))
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_trials_are_stopped_go_on_after_their_process_is_killed_and_leave_nothing(
    ray_cluster: None, tmp_path: Path
) -> None:
    died = tmp_path / "died"
    (tmp_path / "mine.py").write_text(KILLS.format(died=str(died)))
    rates = {"type": "choice", "values": [0.3, 0.2, 1e-7, 1e-8]}
    space = {"n_estimators": {"type": "constant", "value": 80}, "learning_rate": rates}
    found = search(
        tmp_path,
        "run",
        {"estimator": "xgboost_ray", "actors": 2, "cpus_per_actor": 0.5},
        models=[{"estimator": "xgboost_ray", "actors": 2, "cpus_per_actor": 0.5, "search_space": space}],
        metric=f"{tmp_path}/mine.py:loss",
        mode="min",
        scheduler={"name": "asha", "grace_period": 1, "reduction_factor": 2},
        trials=4,
        timing=Timing(checkpoint_s=0.0),
    )
    records = found.trial_records
    print([(record.state, record.attempt, len(record.steps), record.reason) for record in records])
    assert died.exists()
    assert {record.state for record in records} == {"finished", "stopped"}
    assert sorted(record.attempt for record in records) == [1, 1, 1, 2]
    again = next(record for record in records if record.attempt == 2)
    assert [step.step for step in again.steps] == list(range(1, len(again.steps) + 1))
    assert left_over() == {}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("recovery", "actors"), [("warm", 3), ("cold", 4), ("elastic", 3)])
def test_a_killed_actor_costs_some_rounds_and_no_result(ray_cluster: None, recovery: str, actors: int) -> None:
    """warm: one actor more than the two there were; cold: two more; elastic: on with one, and with two again."""
    gang = Gang.of({"actors": 2, "cpus_per_actor": 0.5, "recovery": recovery})
    found = run(gang, rows=20_000, rounds=600, kill_after=2)
    print(recovery, found)
    assert found.steps == tuple(range(10, 601, 10))  # none is told twice, none is missing
    assert found.actors == actors
    assert len(found.starts) == (3 if recovery == "elastic" else 2)
    assert all(0 < rounds < 600 for rounds in found.starts[1:])  # not from the beginning
    assert found.distance < (
        0.5 if recovery == "elastic" else 1e-5
    )  # as if nothing had happened, where no row is missed
    assert left_over() == {}

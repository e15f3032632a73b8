"""A study under a scheduler that pauses trials, trained by helpers in Ray: what it finds, and what a dead one costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chaos import truth
from climbing import STEPS, deadly

from search_spaces import Float, SearchSpace
from tuning import RunResult, TuneRunner
from tuning.basics.timing import USUAL

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_cluster")]
DEADLY = 2  # the trial that ends its helper
SPACE = SearchSpace([Float("x", 0.0, 1.0, default=0.5), Float("y", 0.0, 1.0, default=0.5)])
TUNED: dict[str, Any] = {
    "search_space": SPACE, "metric": "weight", "mode": "max", "steps": STEPS, "trials": 7, "algorithm": "random",
    "scheduler": {"name": "pbt", "perturbation_interval": 2}, "slots": 2, "placement": "spread", "mlflow": False,
}  # fmt: skip


def killed(folder: Path, most: int, hangs: bool = False, in_process: bool = False) -> RunResult:
    """A run in which a trial ends its helper so often."""
    (folder / "times").mkdir(parents=True)
    warm = [{"config": {"x": 0.1, "y": 0.5}}, {"config": {"x": 0.987, "y": 0.5}}]  # one that keeps its configuration
    fields = {**TUNED, "objective": deadly(folder / "times", most, hangs), "warm_start": warm}
    runner = TuneRunner(**fields, limits={"trial_seconds": 4.0} if hangs else {})
    runner.timing = replace(USUAL, cold_start_s=0.0)
    assert runner.plan().helpers == 2
    return runner.run(folder / "run", progress=False, in_process=in_process)


@pytest.mark.slow
def test_helpers_find_what_one_process_finds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    label = np.where(x.sum(axis=1) > 0, "high", "low")
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": label})
    models = {"data": frame, "target": "y", "models": ["xgboost", "ridge"], "trials": 6, "split": {"folds": 2}}
    shared = {name: TUNED[name] for name in ("algorithm", "scheduler", "slots", "placement", "mlflow")}
    runner = TuneRunner(**models, **shared)
    one = runner.run(tmp_path / "one", progress=False, in_process=True)
    several = runner.run(tmp_path / "several", progress=False)
    assert truth(several) == truth(one)
    assert {each.worker for each in several.trial_records}.isdisjoint(each.worker for each in several.study_records)
    assert not list((tmp_path / "several" / "in_progress").rglob("h*-*"))


def test_a_helper_that_is_killed_is_replaced_and_changes_nothing(tmp_path: Path) -> None:
    whole, once = killed(tmp_path / "whole", 0, in_process=True), killed(tmp_path / "once", 1)
    assert len(list((tmp_path / "once" / "times").iterdir())) == 1
    assert {record.state for record in whole.trial_records} == {"finished"}
    assert truth(once)["trials"] == truth(whole)["trials"]
    assert {record.trial: record.attempt for record in once.trial_records if record.attempt > 1} == {DEADLY: 2}
    assert not list((tmp_path / "once" / "run" / "in_progress").rglob("h*-*"))


@pytest.mark.slow
def test_a_trial_that_always_ends_its_helper_puts_its_study_aside(tmp_path: Path) -> None:
    (study,) = killed(tmp_path, 9, hangs=True).study_records
    assert study.status == "quarantined"
    assert str(study.reason).startswith(
        f"trial {DEADLY} has ended its worker 2 times: it ran longer than its time limit"
    )
    assert "in objective" in str(study.error)
    assert len(list((tmp_path / "times").iterdir())) == 2

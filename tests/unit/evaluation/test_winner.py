"""Which trial wins, and which rows its model knows."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsRegressor

from search_spaces import presets
from tuning import TuneRunner
from tuning.evaluation.baseline import ScoredBaseline
from tuning.evaluation.winner import SimpleFirst, StudyOutcome, choose, standard_error
from tuning.models.registry import families
from tuning.notes import FitCode
from tuning.records.schema import FINISHED, StepRecord, TrialRecord


def trial(
    number: int, score: float | None, family: str = "ridge", steps: int = 3, folds: tuple[float, ...] = ()
) -> TrialRecord:
    return TrialRecord(
        run="r", study="s", customer="c", trial=number, attempt=1, suggested=2 * number, told=2 * number + 1, config={},
        family=family, algorithm="random", scheduler="fifo", metric="m", mode="max", state=FINISHED, reason=None,
        steps=[StepRecord(1, score)], best_step=steps, score=score, fold_scores=folds, metrics={}, study_seed=0,
        seed=0, started=0.0, seconds=0.0, fit_seconds=0.0, suggest_seconds=0.0, worker="w", versions="v",
    )  # fmt: skip


def test_the_default_is_kept_unless_something_is_better_on_cross_validation() -> None:
    assert choose([trial(0, 0.7), trial(1, 0.7), trial(2, 0.6)]).winner.trial == 0
    assert choose([trial(0, 0.7), trial(1, 0.71)]).winner.trial == 1
    smaller = [replace(trial(0, 0.7), mode="min"), replace(trial(1, 0.6), mode="min")]
    assert choose(smaller).winner.trial == 1


@pytest.mark.parametrize(("mode", "test", "baseline"), [("max", -0.0, 0.0), ("min", 0.0, -0.0)])
def test_no_gain_is_nought_and_not_less(mode: str, test: float, baseline: float) -> None:
    won = replace(trial(1, 0.7), mode=mode)
    gain = StudyOutcome(won, ScoredBaseline("ridge", 0.7, baseline), test_score=test).gain
    assert gain is not None
    assert math.copysign(1, gain) == 1


def test_scores_whose_squares_overflow_have_a_standard_error() -> None:
    assert standard_error([1e300, 3e300]) == pytest.approx(1e300)
    assert standard_error([1.7e308, 1.7e308]) == 0


def test_one_standard_error_prefers_the_simpler_model_within_the_noise() -> None:
    folds = (0.70, 0.80, 0.90)
    assert standard_error(folds) == pytest.approx(0.1 / np.sqrt(3))
    best = trial(5, 0.80, "xgboost", 12, folds)
    trials = [
        trial(0, 0.70, "ridge"),  # simplest, but more than one standard error worse
        trial(1, 0.75, "xgboost", 20, folds),
        trial(2, 0.75, "ridge"),
        trial(3, 0.76, "ridge"),
        trial(4, 0.78, "xgboost", 4, folds),
        best,
    ]
    order: SimpleFirst = {"ridge": (), "xgboost": ()}
    assert choose(trials).winner is best
    assert choose(trials, order).winner.trial == 2
    assert choose([each for each in trials if each.family == "xgboost"], order).winner.trial == 4
    assert choose([trials[0], best], order).winner is best
    assert choose([trial(0, 0.79), trial(1, 0.8)], order).winner.trial == 1, "no folds, no standard error"


@pytest.mark.parametrize("name", sorted(families().keys() - {"constant"}))
def test_of_two_equally_good_models_of_a_family_the_simpler_one_wins(name: str) -> None:
    simpler = families()[name].simpler
    assert {parameter for parameter, _ in simpler} & {parameter.name for parameter in presets.load(name).parameters}
    for parameter, direction in simpler:
        low, high = (replace(trial(number, 0.8, name), config={parameter: number + 1}) for number in range(2))
        assert choose([low, high], {name: simpler}).winner is (high if direction == "larger" else low)
        unlimited = replace(trial(0, 0.8, name), config={parameter: None})
        assert choose([unlimited, high], {name: simpler}).winner is high


@pytest.mark.long
def test_one_standard_error_takes_the_strongest_penalty_of_a_family_without_steps(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(60, 8)), columns=list("abcdefgh"))
    frame["y"] = frame["a"] + rng.normal(scale=3.0, size=60)
    runner = TuneRunner(
        data=frame, target="y", search_space="ridge", algorithm="random", scheduler="fifo", trials=8,
        winner="one_standard_error", portfolio="none", mlflow=False, report=False,
    )  # fmt: skip
    result = runner.run(str(tmp_path / "run"), progress=False, in_process=True)
    trials = result.trial_records
    best = min(trials, key=lambda record: record.score)
    within = [record for record in trials if record.score <= best.score + standard_error(best.fold_scores)]
    (study,) = result.study_records
    assert study.config["alpha"] == max(record.config["alpha"] for record in within)
    assert study.trial != min(record.trial for record in within)


@pytest.mark.parametrize("others", [1, 2])
def test_a_note_says_that_the_baseline_was_kept_because_no_other_trial_finished(others: int, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(30.0), "y": np.arange(30.0)})
    runner = TuneRunner(
        data=frame, target="y", models=[{"name": "near", "estimator": KNeighborsRegressor(), "search_space": {
            "n_neighbors": {"type": "int", "low": 1, "high": 1000, "default": 1}}}],
        warm_start=[{"config": {"n_neighbors": 900 + extra}} for extra in range(others)], trials=1 + others,
        mlflow=False, report=False,
    )  # fmt: skip
    (study,) = runner.run(str(tmp_path / "run"), progress=False, in_process=True).study_records
    assert FitCode.FIRST_ALONE("the baseline") in study.notes


@pytest.mark.parametrize("split", [{}, {"type": "time", "column": "day"}], ids=["random", "time"])
def test_the_saved_model_knows_the_hold_out_rows_and_the_scored_one_did_not(
    split: dict[str, str], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=50), "day": pd.date_range("2024-01-01", periods=50)})
    frame["y"] = frame["x"] + rng.normal(scale=0.1, size=50)
    known, scores = {}, {}
    for final_fit in ("all", "search"):
        runner = TuneRunner(
            data=frame,
            target="y",
            models=[KNeighborsRegressor(1)],
            split=split,
            final_fit=final_fit,
            mlflow=False,
            report=False,
        )
        result = runner.run(str(tmp_path / final_fit), progress=False, in_process=True)
        (study,) = result.study_records
        model = result.model("search")
        assert model.final_fit == study.final_fit == final_fit
        scores[final_fit] = study.test_score
        known[final_fit] = model.predict(frame) == frame["y"].to_numpy()
    assert known["all"].all()
    assert known["search"].sum() == 40
    if split:
        assert not known["search"][40:].any()
    assert scores["all"] == scores["search"] > 0

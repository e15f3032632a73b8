"""Which trials are better together, and that it does not matter where and when they were trained."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_rows import prepare_data
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import LinearSVC

from tuning import RunResult, TuneRunner
from tuning.data.customers import Customer
from tuning.definition.customer_limits import Limits
from tuning.errors import RunError
from tuning.evaluation import ensemble as module
from tuning.evaluation.greedy import MOST_MEMBERS, PICKS, greedy
from tuning.evaluation.out_of_fold import KeptPredictions, OutOfFold
from tuning.evaluation.study_data import StudyData, train
from tuning.execution.study_run import conclude_study
from tuning.execution.worker import Worker, WorkerContext
from tuning.models.customer_model import load_model
from tuning.notes import EndCode, FitCode
from tuning.preprocessing.task import BINARY, REGRESSION, Prediction, Task
from tuning.records.schema import TrialRecord
from tuning.runs.outcome import sentences
from tuning.runs.plan_file import read_plan


def nearness(answers: Sequence[np.ndarray]) -> list[float]:
    """The true values are 0."""
    return [-float(np.abs(answer).mean()) for answer in answers]


def test_greedy_selection_by_hand() -> None:
    too_large, too_small, far = np.array([1.0, 1.0]), np.array([-1.5, -1.5]), np.array([-3.0, -3.0])
    # 1 → (1 - 1.5) / 2 = -0.25 → (2 - 1.5) / 3 = 0.17 → (2 - 3) / 4 = -0.25 → (3 - 3) / 5 = 0, which nothing beats
    assert greedy([too_small, far, too_large], nearness, start=2) == ([2, 0, 2, 0, 2], 0.0)
    assert greedy([far, too_small, too_large, too_large], nearness, start=3) == ([3, 1, 2, 1, 2], 0.0), "the first"
    assert greedy([too_large, 2 * too_large], nearness, start=0) == ([0], -1.0), "no mean is better"


def test_an_ensemble_has_few_members_however_many_would_help() -> None:
    rng = np.random.default_rng(0)
    answers = list(rng.normal(size=(30, 200)))
    picks, score = greedy(answers, nearness, start=3)
    assert picks[0] == 3
    assert len(picks) <= PICKS
    assert len(set(picks)) == MOST_MEMBERS
    together, alone = nearness([np.mean([answers[pick] for pick in picks], axis=0), answers[3]])
    assert score == together > 2 * alone


def test_what_is_kept_of_trials_is_bounded_and_the_best() -> None:
    kept = KeptPredictions.of_rows(10, Task(REGRESSION), "min")
    assert kept.most == 20
    assert KeptPredictions.of_rows(10**6, Task(REGRESSION), "min").most == 8
    assert KeptPredictions.of_rows(10**7, Task(BINARY, ("a", "b")), "min").most == 0
    small = replace(kept, most=2)
    for seed, scores in enumerate([(3.0, 1.0, 2.0), (5.0,), (float("nan"), 0.5), (0.5, 4.0)]):
        watch = small.watch({"model": "m"}, seed)
        for step, score in enumerate(scores, start=1):
            watch(step, score, [Prediction(np.array([score]))])
    assert [small.of({"model": "m"}, seed) is None for seed in range(4)] == [True, True, False, False]
    found = small.of({"model": "m"}, 2)
    assert found is not None
    assert (found.step, found.score, found.folds[0][0]) == (2, 0.5, 0.5)


def table(rows: int = 200) -> pd.DataFrame:
    """What is linear in one column and far from it in another: a linear model and neighbours each know one half."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(rows, 4)), columns=["a", "b", "c", "d"])
    frame["y"] = 3 * frame["a"] + 2 * frame["c"] + np.abs(4 * frame["b"]) + rng.normal(scale=0.3, size=rows)
    return frame


def search(folder: Path, **fields: Any) -> RunResult:
    fields = {"data": table(), "target": "y", "models": [LinearRegression(), KNeighborsRegressor(15)], **fields}
    return TuneRunner(**{"mlflow": False, "report": False, **fields}).run(str(folder), progress=False, in_process=True)


@pytest.mark.long
def test_an_ensemble_is_better_than_its_winner_and_is_one_model(tmp_path: Path) -> None:
    alone, together = (search(tmp_path / kind, ensemble=kind, final_fit="search") for kind in ("none", "greedy"))
    (single,), (study,) = alone.study_records, together.study_records
    assert single.ensemble is single.ensemble_score is None
    for name in ("trial", "family", "config", "cv_score", "cv_error", "baseline_test_score"):
        assert getattr(study, name) == getattr(single, name), "the winner is the best single trial"
    members = json.loads(study.ensemble)
    assert sorted(member["family"] for member in members) == ["KNeighborsRegressor", "LinearRegression"]
    assert members[0]["trial"] == study.trial
    assert sum(member["weight"] for member in members) == pytest.approx(1)
    assert study.ensemble_score < study.cv_score
    assert study.test_score < single.test_score
    assert study.gain == 100 * (study.baseline_test_score - study.test_score) / study.baseline_test_score
    shown = together.customer(study.customer)
    own, best = (float(f"{score:.4g}") for score in (study.ensemble_score, study.cv_score))
    assert re.findall(r"([\d.]+) \(its best trial ([\d.]+) ± .*\) on the folds", str(shown)) == [(f"{own}", f"{best}")]
    assert dict(shown.facts())["held_back"] == "0"
    assert "best trial" not in str(alone.customer(study.customer))
    model, frame = together.model(), table().drop(columns="y")
    parts = [member.prediction(member.encoded(member.raw(frame)), model.task).values for member in model.members]
    weights = [member["weight"] for member in members]
    np.testing.assert_allclose(model.predict(frame), np.average(parts, axis=0, weights=weights))
    assert model.family == "ensemble"
    assert repr(model).startswith(f"<ensemble of 2 ({members[0]['family']}, {members[1]['family']}) model of customer")
    assert together.leaderboard()["model"][0] == f"ensemble of 2 ({members[0]['family']}, {members[1]['family']})"
    size = sum(file.stat().st_size for file in Path(together.directory.path(study.model_path)).iterdir())
    assert study.model_bytes == size > single.model_bytes
    assert [result.summary()["ensembles"] for result in (alone, together)] == [0, 1]
    told = f"1 model is an ensemble of several trials. The models take {size / 1e3:.3g} kB in all; `ensemble: none`"
    assert told in " ".join(sentences(together, together.summary()))
    assert " ensemble" not in " ".join(sentences(alone, alone.summary()))


def test_where_less_is_better_an_ensemble_has_less(tmp_path: Path) -> None:
    (study,) = search(tmp_path, metric="sklearn.metrics:mean_absolute_error", mode="min").study_records
    assert 0 < study.ensemble_score < study.cv_score


@pytest.mark.parametrize(
    ("rare", "fields", "metric"),
    [(4, {}, "log_loss"), (4, {"ensemble": "none"}, ""), (4, {"metric": "log_loss"}, ""), (40, {}, None)],
)
def test_few_rows_of_a_class_are_in_every_fold_and_said(
    rare: int, fields: dict[str, Any], metric: str | None, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.normal(size=120), "y": np.where(rng.permutation(120) < rare, "bad", "good")})
    data = prepare_data(frame, target="y", task=BINARY, seed=0)
    assert all((data.y[rows] == 0).any() for rows in data.unseen)
    (study,) = search(tmp_path, data=frame, models=[LogisticRegression(), GaussianNB()], **fields).study_records
    found = [note for note in study.notes if note.code is FitCode.FEW_OF_CLASS]
    assert found == ([] if metric is None else [FitCode.FEW_OF_CLASS(rows=3, label="bad", metric=metric)])
    assert all(str(note).startswith("the choice between trials rests on 3 rows of the class 'bad'") for note in found)


def test_every_file_of_an_ensemble_is_checked(tmp_path: Path) -> None:
    result = search(tmp_path / "run")
    (study,) = result.study_records
    for file in Path(result.directory.path(study.model_path)).iterdir():
        content = file.read_bytes()
        file.write_bytes(content[:-2] + b"!!")
        with pytest.raises(RunError, match=r"is damaged: its SHA-256 is not the recorded one"):
            load_model(result.directory, study.model_path, study.model_sha256)
        file.write_bytes(content)
    load_model(result.directory, study.model_path, study.model_sha256)


SMALL: dict[str, Any] = {"models": (), "scheduler": "asha", "algorithm": "random", "search_space": "fast"}
SAID = ("trial", "cv_score", "ensemble", "ensemble_score", "test_score", "baseline_test_score", "gain", "notes")


@pytest.mark.long
def test_a_resumed_study_makes_the_predictions_that_it_lacks_again_and_finds_the_same_ensemble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = search(tmp_path / "whole", trials=9, **SMALL).study_records
    search(tmp_path / "cut", trials=6, **SMALL)
    result = TuneRunner.resume(str(tmp_path / "cut"), trials=9, progress=False, in_process=True)
    (resumed,) = result.study_records
    assert whole.ensemble is not None
    assert [getattr(resumed, name) for name in SAID] == [getattr(whole, name) for name in SAID]
    # As of a spread study, whose trials have all run elsewhere.
    plan = read_plan(result.directory, result.term)
    (study,) = plan.ended or plan.studies
    context = WorkerContext.open(result.directory, plan.run, plan.spec)
    elsewhere = conclude_study(Worker(context), study, result.trial_records)
    assert [getattr(elsewhere, name) for name in SAID] == [getattr(whole, name) for name in SAID]
    # A limit of time that is used up leaves none for the fits of several models.
    hurried = plan.spec.definition.model_copy(update={"limits": Limits(study_seconds=5)})
    context = WorkerContext.open(result.directory, plan.run, replace(plan.spec, definition=hurried))
    why = EndCode.TOOK_LONGER("study_seconds", limit=5)
    assert conclude_study(Worker(context), study, result.trial_records, ended_by=why).ensemble is None
    assert conclude_study(Worker(context), study, result.trial_records).ensemble == whole.ensemble
    # A library that gives other numbers now makes no member of what was another trial.
    context = WorkerContext.open(result.directory, plan.run, plan.spec)
    said = _predictions(context, study.customer, result.trial_records)
    monkeypatch.setattr(module, "train", lambda *_: iter(()))
    assert conclude_study(Worker(context), study, result.trial_records).ensemble is None
    # What workers have written down is trained nowhere again.
    written = conclude_study(Worker(context), study, result.trial_records, predictions=said.get)
    assert [getattr(written, name) for name in SAID] == [getattr(whole, name) for name in SAID]


def _predictions(context: WorkerContext, customer: Customer, records: list[TrialRecord]) -> dict[int, OutOfFold]:
    """What trials say when they are trained once more."""
    data = context.data(customer)
    assert isinstance(data, StudyData)
    assert data.kept is not None
    metric = context.customers.metric(data)
    for record in records:
        list(islice(train(record.config, data, metric, record.seed), len(record.steps)))
    said = {record.trial: data.kept.of(record.config, record.seed) for record in records}
    data.kept.clear()
    return {trial: found for trial, found in said.items() if found is not None}


class Picky(RegressorMixin, BaseEstimator):
    """Neighbours that cannot be fitted to more than `most` rows."""

    def __init__(self, most: int = 0) -> None:
        self.most = most

    def fit(self, X: np.ndarray, y: np.ndarray) -> Picky:
        if len(X) > self.most:
            raise ValueError(f"{len(X)} rows are too many")
        self.neighbours_ = KNeighborsRegressor(15).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.neighbours_.predict(X)


@pytest.mark.parametrize(("most", "members"), [(150, 1), (160, 1), (200, 2)])
def test_a_member_that_cannot_be_fitted_again_is_left_out(tmp_path: Path, most: int, members: int) -> None:
    """Of 200 rows 160 are of the search, and two thirds of these of a fold."""
    result = search(tmp_path / "run", models=[LinearRegression(), Picky(most)], allow_code=True)
    (study,) = result.study_records
    assert study.status == "ok"
    assert len(result.model(allow_code=True).members) == members
    failed = {FitCode.REFIT_FAILED, FitCode.LAST_REFIT_FAILED}
    assert any(note.code in failed for note in study.notes) == (members == 1)


def test_a_classifier_without_probabilities_is_no_member(tmp_path: Path) -> None:
    frame = table()
    frame["y"] = np.where(frame["y"] > 2, "high", "low")
    models: list[Any] = ["sklearn.tree:DecisionTreeClassifier", LinearSVC(), "sklearn.naive_bayes:GaussianNB"]
    result = search(tmp_path / "run", data=frame, models=models, metric="accuracy")
    (study,) = result.study_records
    assert study.status == "ok"
    assert "LinearSVC" not in [member["family"] for member in json.loads(study.ensemble or "[]")]

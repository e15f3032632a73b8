"""What a regression may answer: models that extrapolate are held within the target's range, widened by its width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import tuning
from prepared_rows import prepare_data
from trained import trained

from tuning import RunResult
from tuning.definition.definition import define
from tuning.errors import DefinitionError
from tuning.evaluation.conclusion import conclude, fitted_on_all
from tuning.evaluation.metrics import Metric
from tuning.evaluation.out_of_fold import KeptPredictions
from tuning.evaluation.study_data import StudyData
from tuning.evaluation.winner import StudyOutcome
from tuning.models.customer_model import load_model
from tuning.notes import FitCode
from tuning.preprocessing.task import REGRESSION
from tuning.records.schema import Config
from tuning.storage.run_directory import RunDirectory

RMSE = "rmse"
EXTRAPOLATING = (
    "ridge", "lasso", "elastic_net", "linear_svm", "sgd", "mlp",
    ("svm", {"kernel": "linear"}),
)  # fmt: skip


def runaway(count: int = 60, beyond: int = 3) -> pd.DataFrame:
    """A line from 1 to 11; of the last rows, which are held out, some lie a thousand times farther than any other."""
    x = np.random.default_rng(0).uniform(size=count)
    frame = pd.DataFrame({"t": np.arange(count), "x": x, "y": 1 + 10 * x})
    frame.loc[count - beyond :, "x"] = 1000.0
    return frame


def data_of(frame: pd.DataFrame, **fields: Any) -> StudyData:
    split = {"type": "time", "column": "t", "folds": 2}
    return prepare_data(frame, target="y", task=REGRESSION, seed=0, split=split, drop=["t"], **fields)


def concluded(data: StudyData, *configs: Config) -> StudyOutcome:
    metric = Metric(RMSE, data.task)
    records = [trained(config, data, metric, number) for number, config in enumerate(configs)]
    return conclude(records, data, metric, "acme", or_constant=False)


def config_of(name: str | tuple[str, Config]) -> Config:
    family, params = (name, {}) if isinstance(name, str) else name
    return {"model": family, **({"max_iter": 20} if family == "mlp" else {}), **params}


@pytest.mark.parametrize("name", EXTRAPOLATING, ids=str)
def test_a_model_that_extrapolates_is_held_and_says_so(name: str | tuple[str, Config], tmp_path: Path) -> None:
    frame = runaway()
    data = data_of(frame)
    outcome = concluded(data, config_of(name))
    assert outcome.held_back == 3
    (note,) = (note for note in outcome.notes if note.code is FitCode.HELD_IN_BOUNDS)
    assert (note.values["held"], note.values["rows"]) == (3, 12)
    assert outcome.model is not None
    y = frame["y"][data.split.search]
    width = y.max() - y.min()
    directory = RunDirectory(str(tmp_path))
    outcome.model.save(directory, "models/acme")
    said = load_model(directory, "models/acme").predict(frame[-3:])
    assert ((said >= y.min() - width) & (said <= y.max() + width)).all()
    with np.errstate(over="ignore"):  # exponentials
        off = concluded(data_of(frame, bounds="off"), config_of(name))
    assert off.held_back is None
    assert off.model is not None
    assert (np.abs(off.model.predict(frame[-3:])) > 100).all()


def test_the_folds_are_scored_by_what_would_be_answered() -> None:
    """A line that runs away on rows of the folds loses to the constant without bounds; its kept answers are held."""
    frame = runaway()
    frame.loc[[25, 45], "x"] = 1000.0  # in the rows that are predicted, the first also in those of the second fold
    scores = {}
    for bounds in ("auto", "off"):
        data = data_of(frame, bounds=bounds)
        kept = data.kept = KeptPredictions.of_rows(60, data.task, "min")
        config = {"model": "ridge", "alpha": 1e-6}
        scores[bounds] = trained(config, data, Metric(RMSE, data.task)).fold_scores
        found = kept.of(config, 5)
        assert found is not None
        for (rows, unseen), answers, score in zip(data.split.folds, found.folds, scores[bounds], strict=True):
            y = data.y[data.split.search]
            assert score == pytest.approx(np.sqrt(np.mean((answers - y[unseen]) ** 2)))
            if bounds == "auto":
                assert answers.max() <= 2 * y[rows].max() - y[rows].min()
    assert scores["auto"][0] < 20
    assert scores["off"][0] > 1000


def test_each_member_of_an_ensemble_is_held_also_after_the_last_fit(tmp_path: Path) -> None:
    frame = runaway()
    frame["y"] += np.random.default_rng(1).normal(size=len(frame))
    data = data_of(frame)
    data.kept = KeptPredictions.of_rows(60, data.task, "min")
    outcome = concluded(data, {"model": "ridge"}, {"model": "knn"}, {"model": "linear_svm"})
    assert outcome.ensemble is not None
    assert outcome.model is not None
    assert {member.bounds for member in outcome.model.members if member.family != "knn"} != {None}
    everything = fitted_on_all(outcome, data).model
    assert everything is not None
    width = frame["y"].max() - frame["y"].min()
    for member in everything.members:
        assert member.bounds is not None
        assert member.bounds.low == pytest.approx(frame["y"].min() - width)
        assert member.bounds.high == pytest.approx(frame["y"].max() + width)
    assert everything.prediction(frame.assign(x=1e6)).held_back == len(frame)


@pytest.mark.parametrize("value", ["on", [0], [3, 1], [None, None], [0, "much"], 5, [0, float("inf")], [True, 2]])
def test_bounds_that_are_none_are_refused(value: object) -> None:
    with pytest.raises(DefinitionError, match=r"bounds: .* is neither auto nor off nor the least and the most number"):
        define({"data": "x", "target": "y", "bounds": value})


def test_own_bounds_are_kept_and_counted_when_predicting(tmp_path: Path) -> None:
    frame = runaway().assign(y=lambda rows: 10 * rows["x"].clip(upper=1) - 1)  # some of them below 0
    frame.to_csv(tmp_path / "shop.csv", index=False)
    definition = tmp_path / "d.yaml"
    definition.write_text(
        "data: shop.csv\ntarget: y\ndrop: [t]\nmetric: rmse\nmodels: ridge\ntrials: 2\nbounds: [0, null]\n"
        "mlflow: false\nreport: false\nfinal_fit: search\nsplit: {type: time, column: t}\n"
    )
    made = tuning("run", definition, "--run-dir", tmp_path / "run", "--in-process", "--progress", "none")
    assert made.exit_code == 0, made.output
    row = RunResult(str(tmp_path / "run")).leaderboard().iloc[0]
    below = int((frame["y"] < 0).sum())
    assert f"{below} targets of 60 lie beyond `bounds`, which no prediction does" in row["notes"]
    assert row["held_back"] >= 3
    new = pd.DataFrame({"x": [-1000.0, 0.5, 1000.0]})
    new.to_csv(tmp_path / "new.csv", index=False)
    answer = tuning("predict", tmp_path / "run", "--customer", "shop", "--data", tmp_path / "new.csv")
    assert answer.exit_code == 0
    assert answer.stderr.splitlines()[-1] == "2 of 3 predictions went beyond `bounds`, and were held there"
    said = [float(line.split(",")[-1]) for line in answer.stdout.splitlines()[1:]]
    assert said[0] == 0.0
    assert 3 < said[1] < 5
    assert said[2] <= 2 * frame["y"].max() - frame["y"].min()
    definition.write_text(definition.read_text().replace("metric: rmse", "task: binary"))
    refused = tuning("plan", definition)
    assert refused.exit_code == 2
    assert "bounds: the task is binary, and only numbers have bounds; remove it" in refused.stderr

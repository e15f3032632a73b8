"""What models are compared with: the definition's baseline, whatever form it has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from prepared_rows import prepare_data
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, roc_auc_score

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.definition.definition import define
from tuning.errors import CustomerError, DefinitionError, PlanError
from tuning.evaluation.baseline import given_prediction
from tuning.evaluation.metrics import Metric
from tuning.planning.plan import make_plan
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION
from tuning.runs.outcome import sentences

COLUMN = {"column": "predicted"}
NAME = "your predictions (predicted)"


def rows(seed: int = 0, off: float = 5.0, count: int = 60) -> pd.DataFrame:
    """A target that a line tells, and predictions that are off by about so much."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(count, 2)), columns=["a", "b"])
    frame["y"] = 10 * frame["a"] + rng.normal(size=count)
    return frame.assign(predicted=frame["y"] + rng.normal(scale=off, size=count))


def search(folder: Path, data: Any, **fields: Any) -> RunResult:
    given: dict[str, Any] = {"target": "y", "trials": 2, "algorithm": "random", "scheduler": "fifo", "mlflow": False}
    given |= {"models": ["ridge"], "metric": "mae", "portfolio": "none", "report": False, **fields}
    return TuneRunner(data=data, **given).run(str(folder), progress=False, in_process=True)


def shapes(folder: Path, frames: dict[str, pd.DataFrame]) -> dict[str, dict[str, Any]]:
    """The same customers in all forms of data."""
    for name, frame in frames.items():
        for form in ("csv", "parquet"):
            (folder / form).mkdir(exist_ok=True)
        frame.to_csv(folder / "csv" / f"{name}.csv", index=False)
        frame.to_parquet(folder / "parquet" / f"{name}.parquet", index=False)
    table = pd.concat([frame.assign(who=name) for name, frame in frames.items()], ignore_index=True)
    return {
        "csv": {"data": str(folder / "csv" / "*.csv")},
        "parquet": {"data": str(folder / "parquet" / "*.parquet"), "features": ["a", "b"]},
        "frames": {"data": frames},
        "keyed": {"data": table, "by": "who"},
    }


@pytest.mark.long
def test_own_predictions_are_scored_as_they_stand_and_are_no_feature_in_any_form_of_data(tmp_path: Path) -> None:
    frames = {"far": rows(1), "near": rows(2, off=0.01)}
    for form, given in shapes(tmp_path, frames).items():
        result = search(tmp_path / f"run-{form}", baseline=COLUMN, **given)
        for study in result.study_records:
            frame = frames[study.customer]
            assert study.baseline == NAME, form
            unseen = frame.iloc[result.customer(study.customer).hold_out().index]
            assert study.baseline_test_score == pytest.approx(mean_absolute_error(unseen["y"], unseen["predicted"]))
            left = frame.drop(unseen.index)
            on_folds = mean_absolute_error(left["y"], left["predicted"])
            assert study.baseline_cv_score == pytest.approx(on_folds, rel=0.05)
            assert study.gain == pytest.approx(100 * (1 - study.test_score / study.baseline_test_score))
            assert [column.name for column in result.model(study.customer).columns] == ["a", "b"]
            np.testing.assert_array_equal(
                result.model(study.customer).predict(frame[["a", "b"]]), result.model(study.customer).predict(frame)
            )
        gains = {study.customer: study.gain for study in result.study_records}
        assert gains["far"] > 0 > gains["near"], form


def test_predictions_that_are_better_than_the_models_are_to_be_kept(tmp_path: Path) -> None:
    many = {f"shop-{number}": rows(number, off=0.01, count=120) for number in range(8)}
    result = search(tmp_path / "run", many, baseline=COLUMN, trials=1)
    use = sentences(result, result.summary())[0]
    assert use == "8 of 8 customers have a model: keep the baseline for 8; 8 trials."
    assert set(result.leaderboard()["verdict"]) == {"baseline"}
    (alone,) = sentences(one := search(tmp_path / "one", rows(count=120), baseline=COLUMN), one.summary())[:1]
    assert alone.startswith(f"Use this model: it is surely better than {NAME}. The model, ")
    assert f" The baseline, {NAME}, has " in alone


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (None, "the baseline's column 'predicted' is empty in 1 of 60 rows with a target (first in row 4)"),
        ("n/e", "the baseline's column 'predicted' holds 'n/e' (in 1 of 60 rows, first in row 4), which is no number"),
        (np.inf, "the baseline's column 'predicted' holds inf"),
    ],
)
def test_a_cell_that_is_no_prediction_costs_its_customer_alone(cell: Any, said: str, tmp_path: Path) -> None:
    bad = rows(1)
    bad["predicted"] = bad["predicted"].astype(object)
    bad.loc[3, "predicted"] = cell
    result = search(tmp_path / "run", {"bad": bad, "good": rows(2)}, baseline=COLUMN)
    reasons = {row["customer"]: str(row["reason"] or "") for row in result.board()}
    assert said in reasons["bad"]
    assert not reasons["good"]
    assert result.customer("bad").trial_records == ()


def test_a_row_without_a_target_needs_no_prediction(tmp_path: Path) -> None:
    frame = rows()
    frame.loc[3, ["y", "predicted"]] = None
    (study,) = search(tmp_path / "run", frame, baseline=COLUMN).study_records
    assert (study.status, study.rows, study.baseline) == ("ok", 59, NAME)


def test_predictions_have_to_be_in_what_prepare_gives_back(tmp_path: Path) -> None:
    code = tmp_path / "ready.py"
    code.write_text(
        "def kept(frame):\n    return frame.assign(c=frame['a'] ** 2)\n"
        "def lost(frame):\n    return frame.drop(columns='predicted', errors='ignore')\n"
    )
    result = search(tmp_path / "run", {"one": rows()}, baseline=COLUMN, prepare=f"{code}:kept")
    (study,) = result.study_records
    assert study.baseline == NAME
    assert len(result.model(allow_code=True).predict(rows()[["a", "b"]])) == 60
    with pytest.raises(PlanError, match=r"baseline.column: no customer has a column 'predicted'"):
        search(tmp_path / "lost", {"one": rows()}, baseline=COLUMN, prepare=f"{code}:lost")


@pytest.mark.long
def test_a_family_at_its_defaults_or_a_configuration_is_what_studies_try_first(tmp_path: Path) -> None:
    two = {"one": rows(1), "two": rows(2)}
    first = search(tmp_path / "family", two, baseline="knn", models=["ridge", "knn"])
    own = search(tmp_path / "config", two, baseline={"model": "ridge", "alpha": 0.5})
    default = search(tmp_path / "none", two)
    for result, family, name in (
        (first, "knn", "knn at its defaults"),
        (own, "ridge", "your configuration of ridge"),
        (default, "ridge", "the first model tried"),
    ):
        assert {record.family for record in result.trial_records if record.trial == 0} == {family}
        assert {study.baseline for study in result.study_records} == {family}
        assert f"; gain over the baseline, {name}: " in " ".join(sentences(result, result.summary()))
    assert {record.config["alpha"] for record in own.trial_records if record.trial == 0} == {0.5}
    assert [record.config for record in default.trial_records if record.trial == 0] == [
        record.config for record in own.trial_records if record.trial == 1
    ], "the portfolio's first comes after it"


def test_a_constant_is_a_baseline_too(tmp_path: Path) -> None:
    (study,) = search(tmp_path / "run", rows(count=120), baseline="mean").study_records
    assert study.baseline == "a constant guess"
    assert study.baseline_test_score == study.constant_test_score
    assert study.baseline_cv_score == study.constant_cv_score
    assert study.gain == study.gain_over_constant > 0
    assert study.gain_error > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"baseline": {"column": "predictd"}}, "baseline.column: no customer has a column 'predictd'. Did you mean 'p"),
        (
            {"baseline": "rigde"},
            "baseline: 'rigde' is no model of the search space, which has 'ridge'. Did you mean 'r",
        ),
        ({"baseline": {"alfa": 1.0}}, "baseline.alfa: there is no such parameter (did you mean 'alpha'?)"),
        ({"baseline": {"alpha": -1.0}}, "baseline.alpha: -1.0 is not inside"),
        (
            {"baseline": {"column": "y"}},
            "target: 'y' is the column to predict, so it cannot be under `baseline.column`",
        ),
        ({"baseline": COLUMN, "features": ["a", "predicted"]}, "features: 'predicted' is also under `baseline.column`"),
        ({"baseline": {"column": 3}}, "baseline.column: 3 is not the name of a column"),
        ({"baseline": 3}, "baseline: 3 is no baseline; mean, a model family, a configuration"),
        (
            {"baseline": COLUMN, "compare": {"algorithms": ["random", "grid"]}},
            "`compare.baseline` names one of them; remove `baseline`",
        ),
        (
            {
                "baseline": "mean",
                "target": None,
                "data": None,
                "models": (),
                "objective": print,
                "search_space": {"x": 1},
            },
            "baseline: 'mean' is one of models, and an objective is tuned",
        ),
        (
            {"baseline": COLUMN, "task": "multiclass", "models": ["knn"], "metric": "log_loss"},
            "baseline.column: log_loss needs a probability of each of several classes",
        ),
    ],
)
def test_a_baseline_that_cannot_be_is_refused_before_anything_runs(given: dict[str, Any], message: str) -> None:
    data = {"one": rows().assign(y=np.arange(60) % 3 if "task" in given else rows()["y"])}
    fields = {"data": data, "target": "y", "models": ["ridge"], "mlflow": False, **given}
    with pytest.raises((DefinitionError, PlanError)) as refused:
        make_plan(define(fields), in_process=True)
    assert message in str(refused.value)


def test_an_objective_is_compared_with_a_configuration(tmp_path: Path) -> None:
    runner = TuneRunner(
        objective=lambda config: config["x"], search_space={"x": {"type": "float", "low": 0.0, "high": 1.0}},
        baseline={"x": 0.25}, trials=2, mlflow=False, report=False,
    )  # fmt: skip
    result = runner.run(str(tmp_path / "run"), progress=False, in_process=True)
    assert next(record.config for record in result.trial_records if record.trial == 0) == {"x": 0.25}


def labelled(task: str, metric: str, y: list[Any], said: list[Any]) -> float:
    """The score of predictions of classes, of the whole rows."""
    frame = pd.DataFrame({"x": np.arange(len(y), dtype=float), "y": y, "predicted": said})
    data = prepare_data(frame, target="y", task=task, seed=0, baseline=COLUMN, split={"folds": 2})
    found = Metric(metric, data.task)
    return found.score(data.y, given_prediction(data, found))


YES = ["no", "yes"] * 10
ONE = [0, 1] * 10
SURE = list(np.linspace(0.05, 0.95, 20))
SWAPPED = ["yes", *YES[1:]]


def test_labels_and_probabilities_are_read_as_the_metric_takes_them() -> None:
    assert labelled(BINARY, "accuracy", YES, SWAPPED) == accuracy_score(YES, SWAPPED) == 0.95
    assert labelled(BINARY, "accuracy", YES, SURE) == accuracy_score(ONE, np.array(SURE) >= 0.5)
    assert labelled(BINARY, "roc_auc", YES, SURE) == pytest.approx(roc_auc_score(ONE, SURE))
    assert labelled(BINARY, "log_loss", ONE, SURE) == pytest.approx(log_loss(ONE, SURE))
    assert labelled(BINARY, "roc_auc", ONE, ONE) == 1.0
    assert labelled(BINARY, "accuracy", ONE, list(map(float, ONE))) == 1.0
    three = ["a", "b", "c"] * 8
    assert labelled(MULTICLASS, "accuracy", three, ["b", *three[1:]]) == pytest.approx(23 / 24)
    assert labelled(REGRESSION, "mae", SURE, [str(each + 1) for each in SURE]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("metric", "task", "y", "said", "message"),
    [
        (
            "roc_auc",
            BINARY,
            YES,
            YES,
            "holds 'no' (in 20 of 20 rows, first in row 1), and not the probability of 'yes'",
        ),
        (
            "roc_auc",
            BINARY,
            YES,
            [1.5, *SURE[1:]],
            "holds 1.5 (in 1 of 20 rows, first in row 1), and not the probability",
        ),
        ("accuracy", BINARY, YES, ["Yes", *YES[1:]], "holds 'Yes' (in 1 of 20 rows, first in row 1)"),
        ("accuracy", BINARY, YES, [2.0, *SURE[1:]], "which is no class of the target here ('no', 'yes'), nor the prob"),
        (
            "accuracy",
            MULTICLASS,
            ["a", "b", "c"] * 8,
            ["d", *["a"] * 23],
            "holds 'd' (in 1 of 24 rows, first in row 1)",
        ),
    ],
)
def test_what_is_neither_a_class_nor_a_probability_is_named(
    metric: str, task: str, y: list[Any], said: list[Any], message: str
) -> None:
    with pytest.raises(CustomerError) as refused:
        labelled(task, metric, y, said)
    assert message in str(refused.value)


def test_a_command_takes_it_as_a_key_and_says_it(tmp_path: Path) -> None:
    rows().to_csv(tmp_path / "one.csv", index=False)
    (tmp_path / "own.yaml").write_text("data: one.csv\ntarget: y\nmodels: [ridge]\nmlflow: false\n")
    asked = ["plan", str(tmp_path / "own.yaml"), "--set", "baseline={column: predicted}"]
    told = CliRunner().invoke(main, asked)
    assert f"; the baseline is {NAME}" in told.output
    assert json.loads(CliRunner().invoke(main, [*asked, "--output", "json"]).stdout)["baseline"] == NAME


def test_a_definition_of_a_file_takes_every_form(tmp_path: Path) -> None:
    for given in ("mean", "ridge", {"model": "ridge", "alpha": 0.5}, COLUMN):
        made = define({"data": "x.csv", "target": "y", "baseline": given})
        again = define(json.loads(json.dumps(made.to_dict())))
        assert again.baseline == given
        assert again.fingerprint() != define({"data": "x.csv", "target": "y"}).fingerprint()
    assert "baseline" not in define({"data": "x.csv", "target": "y"}).to_dict()

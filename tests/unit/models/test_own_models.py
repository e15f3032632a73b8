"""The user's own estimators: beside or instead of the built-in families, through a whole run and back from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import by_name, make_frame
from prepared_rows import prepare_data
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

from tuning import TuneRunner
from tuning.definition.definition import define
from tuning.errors import DefinitionError, PlanError, RunError
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import train
from tuning.models.base import EncodedRows
from tuning.models.entries import Stored, freeze_models, own_families, parse_models, same_models
from tuning.models.own import OwnFamily
from tuning.planning.model_space import check_models, parameters_by_model, space_of
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, Prediction, Task
from tuning.storage.run_directory import RunDirectory


class Careless(LogisticRegression):
    """Writes into the labels and weights that it was given, unless it is told to copy."""

    def __init__(self, copy: bool = True) -> None:
        super().__init__()
        self.copy = copy

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Careless:
        super().fit(X, y, sample_weight)
        if not self.copy and sample_weight is not None:
            y[:] = 1 - y
            sample_weight[::2] = 0
        return self


def names(models: Any) -> list[str]:
    return [entry.name for entry in parse_models(models)]


# --- what stands under `models` ------------------------------------------------------------------


def test_names_are_the_classes_and_what_differs() -> None:
    trees = [LinearRegression(), DecisionTreeRegressor(), DecisionTreeRegressor(splitter="random")]
    assert names(trees) == ["LinearRegression", "DecisionTreeRegressor", "DecisionTreeRegressor(splitter='random')"]
    assert names(make_pipeline(StandardScaler(), Ridge())) == ["StandardScaler+Ridge"]
    assert names(["ridge", "sklearn.linear_model:BayesianRidge"]) == ["ridge", "BayesianRidge"]
    assert names({"mine": Ridge(), "theirs": {"estimator": Ridge, "params": {"alpha": 3}}}) == ["mine", "theirs"]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "the list is empty"),
        (["ridg"], "'ridg' is not a model family. Did you mean 'ridge'"),
        ([{"estimatr": "ridge"}], "entry 1: unknown key 'estimatr'. Did you mean 'estimator'"),
        ([{"name": "a"}], "entry 1: there is no `estimator`"),
        ([{"name": "ridge", "estimator": "sklearn.linear_model:Lasso"}], "'ridge' is a built-in family"),
        ([Ridge(), Ridge()], "'Ridge' is listed twice; give each entry a `name`"),
        ([StandardScaler()], "is not an estimator"),
        ([{"estimator": Ridge(), "input": "table"}], "'table' is not one of auto, encoded, frame"),
        ([{"estimator": Ridge(), "search_space": {"alpha": {"type": "flot"}}}], "search_space"),
    ],
)
def test_a_wrong_entry_is_named(models: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match="models") as error:
        define({"data": "*.csv", "target": "y", "models": models})
    assert message in str(error.value)


def test_all_wrong_entries_are_named_at_once() -> None:
    with pytest.raises(DefinitionError) as error:
        define({"data": "*.csv", "target": "y", "models": ["ridg", "ridge", {"name": "a"}, "lightgmb"]})
    said = str(error.value)
    assert "entry 1: 'ridg' is not a model family. Did you mean 'ridge'?" in said
    assert "entry 3: there is no `estimator`" in said
    assert "entry 4: 'lightgmb' is not a model family. Did you mean 'lightgbm'?" in said
    assert said.count("Known: ") == 1


def test_a_list_of_plain_estimators_is_a_search_that_tries_each_once() -> None:
    definition = define({"data": "*.csv", "target": "y", "models": [LinearRegression(), DecisionTreeRegressor()]})
    assert definition.trials == 2
    space = space_of(None, definition.models, REGRESSION)
    assert [config["model"] for config in space.grid()] == ["LinearRegression", "DecisionTreeRegressor"]
    assert space.default() == {"model": "LinearRegression"}


def test_own_models_beside_and_instead_of_presets() -> None:
    mine = {"estimator": make_pipeline(StandardScaler(), Ridge()), "name": "mine"}
    mine["search_space"] = {"ridge__alpha": {"type": "float", "low": 0.1, "high": 10.0, "log": True}}
    beside = parameters_by_model(space_of("tabular-regression", parse_models([mine]), REGRESSION))
    assert next(iter(beside)) == "ridge"
    assert list(beside)[-1] == "mine"
    assert [parameter.name for parameter in beside["mine"]] == ["ridge__alpha"]
    alone = space_of(None, parse_models([mine, "ridge"]), REGRESSION)
    assert alone.default() == {"model": "mine", "ridge__alpha": pytest.approx(1.0)}
    assert alone.complete({"model": "ridge"}) == {"model": "ridge", "alpha": 1.0}


def test_a_space_of_parameters_is_the_only_models() -> None:
    given = define({"data": "*", "target": "y", "search_space": {"alpha": {"type": "float", "low": 0.1, "high": 1.0}}})
    space = space_of(given.search_space, parse_models("ridge"), REGRESSION)
    assert space.default()["model"] == "ridge"
    with pytest.raises(DefinitionError, match="no parameter `model`"):
        space_of(given.search_space, (), REGRESSION)
    with pytest.raises(DefinitionError, match="several models"):
        space_of(given.search_space, parse_models(["ridge", "lasso"]), REGRESSION)


# --- what a model can and cannot do ----------------------------------------------------------------


def refusal(models: Any, task: str, metric: str) -> str:
    entries = parse_models(models)
    with pytest.raises((PlanError, DefinitionError)) as error:
        check_models(space_of(None, entries, task), own_families(entries), task, metric)
    return str(error.value)


def test_a_model_that_cannot_do_it_is_refused_before_anything_runs() -> None:
    assert "is for regression, the task is binary" in refusal([LinearRegression()], BINARY, "roc_auc")
    assert "no probabilities, which 'log_loss' needs" in refusal([LinearSVC()], MULTICLASS, "log_loss")
    assert "'svm' is left out: it has no probabilities" in refusal("svm", MULTICLASS, "log_loss")
    space = {"alpa": {"type": "float", "low": 0.1, "high": 1.0}}
    assert "has no parameter 'alpa'. Did you mean 'alpha'" in refusal(
        {"estimator": Ridge(), "search_space": space}, REGRESSION, "r2"
    )


def test_of_several_models_those_that_cannot_do_it_are_left_out_with_a_note() -> None:
    entries = parse_models(["svm", "logistic"])
    space, notes = check_models(space_of(None, entries, MULTICLASS), {}, MULTICLASS, "log_loss")
    assert list(parameters_by_model(space)) == ["logistic"]
    assert notes[0].subject == "svm"
    space, notes = check_models(space_of(None, entries, BINARY), {}, BINARY, "roc_auc")
    assert list(parameters_by_model(space)) == ["svm", "logistic"]


def test_an_estimator_runs_on_one_thread_and_from_the_studys_seed() -> None:
    family = OwnFamily("forest", make_pipeline(StandardScaler(), RandomForestClassifier(n_jobs=-1)))
    params = family.build({"randomforestclassifier__max_depth": 2}, seed=7).get_params()
    assert params["randomforestclassifier__n_jobs"] == 1
    assert params["randomforestclassifier__random_state"] == 7
    assert params["randomforestclassifier__max_depth"] == 2
    fixed = OwnFamily("forest", RandomForestClassifier(random_state=3)).build({}, seed=7)
    assert fixed.random_state == 3


def test_a_factory_gets_what_its_signature_names_and_the_rest_is_set() -> None:
    def make(strength: float = 1.0) -> Ridge:
        return Ridge(alpha=strength * 10)

    built = OwnFamily("mine", make).build({"strength": 2.0, "fit_intercept": False})
    assert (built.alpha, built.fit_intercept) == (20.0, False)


def test_sample_weights_reach_the_last_step_of_a_pipeline() -> None:
    data = prepare_data(make_frame(), target="y", task=REGRESSION, seed=0)
    weight = np.random.default_rng(0).uniform(0.1, 10, len(data.y))
    plain = OwnFamily("p", make_pipeline(StandardScaler(), LinearRegression()))
    _, rows, unseen = data.whole(plain)
    without = plain.predict(plain.fit({}, rows, data.task, 0), unseen, data.task).values
    rows.weight = weight[: len(rows.y)]
    assert (plain.predict(plain.fit({}, rows, data.task, 0), unseen, data.task).values != without).any()


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "parameter", "message"),
    [
        (
            "xgboost",
            {"max_dept": {"type": "int", "low": 2, "high": 5}},
            "no parameter 'max_dept'. Did you mean 'max_depth'",
        ),
        ("ridge", {"alpa": {"type": "float", "low": 0.1, "high": 1.0}}, "unexpected keyword argument 'alpa'"),
        ("knn", {"n_neighbors": {"type": "int", "low": 0, "high": 3}}, "n_neighbors"),
        ("sklearn.linear_model:Ridge", {"alpha": {"type": "float", "low": -1.0, "high": 1.0}}, "alpha"),
    ],
)
def test_a_parameter_that_a_model_does_not_take_is_told_before_the_run(
    tmp_path: Path, model: str, parameter: dict[str, Any], message: str
) -> None:
    make_frame().to_csv(tmp_path / "a.csv", index=False)
    fields: dict[str, Any] = {"data": str(tmp_path / "a.csv"), "target": "y", "task": "regression"}
    with pytest.raises(DefinitionError) as error:
        TuneRunner(models=model, search_space=parameter, **fields).plan()
    assert message in str(error.value)


# --- whole runs -------------------------------------------------------------------------------------


# --- how an estimator travels -------------------------------------------------------------------------


def test_an_estimator_is_written_down_where_that_says_everything(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    entries = parse_models([DecisionTreeRegressor(max_depth=3), by_name(), {"estimator": Ridge, "name": "class"}])
    frozen = freeze_models(entries, directory)
    assert frozen[0].to_dict() == {
        "name": "DecisionTreeRegressor",
        "estimator": "sklearn.tree:DecisionTreeRegressor",
        "params": {"max_depth": 3},
    }
    assert isinstance(frozen[1].estimator, Stored)
    assert frozen[2].to_dict() == {"name": "class", "estimator": "sklearn.linear_model:Ridge"}
    read_back = parse_models([entry.to_dict() for entry in frozen])
    assert read_back == frozen
    families = own_families(read_back, directory)
    assert repr(families[entries[1].name].source) == repr(by_name())
    assert same_models(read_back, entries, directory)
    assert not same_models(read_back, parse_models([DecisionTreeRegressor(max_depth=4), by_name(), Ridge]), directory)


def test_a_stored_estimator_that_the_run_has_not_written_is_refused(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    (frozen,) = freeze_models(parse_models([by_name()]), directory)
    directory.write(frozen.estimator.file, b"something else")
    with pytest.raises(RunError, match="SHA-256 differs"):
        own_families([frozen], directory)
    with pytest.raises(DefinitionError, match="belongs to another run"):
        own_families([frozen])


def test_a_classifier_keeps_its_labels(tmp_path: Path) -> None:
    frame = make_frame().drop(columns="y").assign(y=lambda all: np.where(all["x"] > 0, "up", "down"))
    own = {"mine": OwnFamily("mine", LogisticRegression())}
    data = prepare_data(frame, target="y", task=BINARY, seed=0, own=own)
    assert list(train({"model": "mine"}, data, Metric("roc_auc", data.task), 0))[-1].score > 0.9


def test_a_classifier_with_a_threshold_of_its_own_is_scored_by_what_it_says() -> None:
    frame = make_frame().drop(columns="y").assign(y=lambda all: np.where(all["x"] > 1, "up", "down"))
    careful = FixedThresholdClassifier(LogisticRegression(), threshold=0.01, response_method="predict_proba")
    data = prepare_data(frame, target="y", task=BINARY, seed=0, own={"mine": OwnFamily("mine", careful)})
    (score,) = {step.fold_scores for step in list(train({"model": "mine"}, data, Metric("recall", data.task), 0))[-1:]}
    assert score == (1.0, 1.0, 1.0)
    assert list(train({"model": "mine"}, data, Metric("precision", data.task), 0))[-1].score < 0.9


class Column(LinearRegression):
    """Answers with a column, as networks do, or with two."""

    columns = 1

    def predict(self, X: Any) -> Any:
        return np.column_stack([super().predict(X)] * self.columns)


def test_a_column_of_numbers_is_scored_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"column": OwnFamily("column", Column()), "plain": OwnFamily("plain", LinearRegression())}
    data = prepare_data(make_frame(), target="y", task=REGRESSION, seed=0, own=own)
    r2 = Metric("r2", data.task)
    scores = {name: list(train({"model": name}, data, r2, 0))[-1].score for name in own}
    assert scores["column"] == scores["plain"]
    monkeypatch.setattr(Column, "columns", 2)
    with pytest.raises(ValueError, match=r"'column' predicts an array of shape \(16, 2\) for 16 rows"):
        list(train({"model": "column"}, data, r2, 0))


@pytest.mark.parametrize("frame", [False, True])
def test_what_an_estimator_writes_into_its_rows_changes_no_other_fit_and_no_score(frame: bool) -> None:
    def said(copy: bool) -> Prediction:
        rows = EncodedRows(pd.DataFrame(X.copy()) if frame else X.copy(), y.copy(), np.ones(60))
        mine = OwnFamily("mine", make_pipeline(StandardScaler(copy=copy), Careless(copy)))
        mine.fit({}, rows, task, 0)
        return mine.predict(mine.fit({}, rows, task, 0), rows, task)

    rng = np.random.default_rng(0)
    X, task = rng.normal(loc=3.0, scale=2.0, size=(60, 2)), Task(BINARY, ("no", "yes"))
    y = (X[:, 0] + rng.normal(size=60) > 3).astype(int)
    one, other = said(copy=True), said(copy=False)
    assert 0 < one.values.mean() < 1
    for tidy, careless in zip(vars(one).values(), vars(other).values(), strict=True):
        np.testing.assert_array_equal(tidy, careless)

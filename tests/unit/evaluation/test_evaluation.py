"""Honest scores: how rows are split, what is weighted, which folds count, who wins."""

from __future__ import annotations

import sys
import types
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_rows import prepare_data
from sklearn.metrics import fbeta_score, log_loss, make_scorer, mean_absolute_error, precision_score, roc_auc_score
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

from tuning.definition.definition import define
from tuning.errors import CustomerError, DefinitionError, PlanError
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import keep_scorable_folds, study_data, train
from tuning.models.registry import family
from tuning.notes import DataCode
from tuning.planning.plan import make_plan
from tuning.preprocessing.splitting import Split, split_rows
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, Prediction, Task


def table(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    return pd.DataFrame(
        {
            "x0": x[:, 0],
            "x1": x[:, 1],
            "x2": x[:, 2],
            "who": rng.integers(0, 12, rows),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, rows), unit="D"),
            "w": rng.uniform(0.5, 2.0, rows),
            "y": x @ [1.0, -2.0, 0.5] + rng.normal(size=rows),
            "c": np.where(x[:, 0] + rng.normal(size=rows) > 1.0, "yes", "no"),
        }
    )


def check_parts(split: Split, rows: int) -> None:
    """Every row is in the search or in the hold-out, once, and never learned from and predicted in the same fold."""
    assert sorted([*split.search, *split.test]) == list(range(rows))
    for learned, predicted in split.folds:
        assert len(learned)
        assert len(predicted)
        assert not set(learned) & set(predicted)


@pytest.mark.parametrize("classification", [False, True])
def test_a_split_is_that_of_scikit_learn_with_the_same_seed(classification: bool) -> None:
    y = np.arange(23) % 2 if classification else np.arange(23.0)
    holder, splitter = (StratifiedShuffleSplit, StratifiedKFold) if classification else (ShuffleSplit, KFold)
    for seed in (0, 7, 2**32 + 5):
        search, test = map(np.sort, next(holder(1, test_size=5, random_state=seed % 2**32).split(y, y)))
        split = split_rows(y, classification=classification, test_size=0.2, folds=3, seed=seed)
        assert np.array_equal(split.search, search)
        assert np.array_equal(split.test, test)
        folds = splitter(3, shuffle=True, random_state=seed % 2**32).split(search, y[search])
        for (learned, valid), (theirs, unseen) in zip(split.folds, folds, strict=True):
            assert np.array_equal(learned, theirs)
            assert np.array_equal(valid, unseen)


@pytest.mark.parametrize("classification", [False, True])
@pytest.mark.parametrize("groups", [3, 5, 12, 60])
def test_groups_are_never_divided(classification: bool, groups: int) -> None:
    rng = np.random.default_rng(groups)
    along = rng.permutation(np.arange(300) % groups)
    y = (rng.random(300) < 0.4).astype(int) if classification else rng.normal(size=300)
    split = split_rows(y, classification=classification, test_size=0.2, folds=3, seed=0, kind="group", along=along)
    check_parts(split, 300)
    assert not set(along[split.search]) & set(along[split.test])
    for learned, predicted in split.folds:
        assert not set(along[split.search[learned]]) & set(along[split.search[predicted]])
    if groups >= 12:
        assert 0.1 < len(split.test) / 300 < 0.35


@pytest.mark.parametrize("moments", [3, 4, 9, 90, 3000])
@pytest.mark.parametrize("folds", [2, 5])
def test_time_splits_learn_from_the_past_only_and_grow(moments: int, folds: int) -> None:
    rng = np.random.default_rng(moments)
    along = rng.integers(0, moments, 400)
    along[:moments] = np.arange(min(moments, 400))
    split = split_rows(
        along.astype(float), classification=False, test_size=0.2, folds=folds, seed=0, kind="time", along=along
    )
    check_parts(split, 400)
    assert along[split.search].max() < along[split.test].min()
    sizes = [len(learned) for learned, _ in split.folds]
    assert sizes == sorted(set(sizes))
    assert 1 <= len(split.folds) <= folds
    for learned, predicted in split.folds:
        assert along[split.search[learned]].max() < along[split.search[predicted]].min()


@pytest.mark.parametrize(
    ("fields", "column", "message"),
    [
        ({"split": {"group": "who"}}, {"who": 1}, "1 different groups; a split needs at least 3"),
        ({"split": {"type": "time", "column": "day"}}, {"day": "2024-01-01"}, "1 different moments"),
        ({"split": {"type": "time", "column": "day"}}, {"day": "soon"}, "no date such as 2024-03-31; set `dates`"),
        ({"split": {"type": "time", "column": "day"}}, {"day": None}, "empty in 300 rows"),
        ({"split": {"type": "time", "column": "nope"}}, {}, "the split column 'nope' is not among the columns"),
        ({"weight": "w"}, {"w": -1.0}, r"missing, negative, infinite or no numbers in 300 rows \(first in row 1\)"),
        ({"weight": "w"}, {"w": 0.0}, "are all 0"),
        ({"weight": "w"}, {"w": "heavy"}, "no numbers in 300 rows"),
    ],
)
def test_columns_with_a_role_are_checked(fields: dict[str, Any], column: dict[str, Any], message: str) -> None:
    frame = table().assign(**column)
    with pytest.raises(CustomerError, match=message):
        study_data(frame, define({"data": "x", "target": "y", **fields}), REGRESSION, 0)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ({"type": "tmie", "column": "day"}, "split.type: .*'tmie'"),
        ({"type": "time"}, "type 'time' needs `column`"),
        ("group", "type 'group' needs `group`"),
        ({"type": "random", "group": "who"}, "takes neither"),
        ({"type": "time", "column": "day", "group": "who"}, "cannot be combined with `group`"),
        ({"folds": 1}, "split.folds: .*at least 2"),
        ({"fold": 3}, "split.fold: unknown key. Did you mean 'folds'"),
    ],
)
def test_a_wrong_split_is_refused(split: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        define({"data": "x", "target": "y", "split": split})


def test_columns_with_a_role_are_not_features() -> None:
    made = define({"data": "x", "target": "y", "weight": "w", "split": {"group": "who"}, "drop": "c"})
    data = study_data(table(), made, REGRESSION, 0)
    assert [column.name for column in data.columns] == ["x0", "x1", "x2", "day"]
    timed = define({"data": "x", "target": "y", "split": {"type": "time", "column": "day"}})
    assert "day" in [column.name for column in study_data(table(), timed, REGRESSION, 0).columns]


def test_weights_count_in_fitting_and_in_scoring() -> None:
    frame = table()
    doubled = pd.concat([frame, frame[frame["x0"] > 0]], ignore_index=True)
    metric = Metric("neg_mean_absolute_error", Task(REGRESSION))
    ridge = family("ridge")

    def scored(rows: pd.DataFrame, weight: str | None) -> tuple[np.ndarray, float]:
        data = prepare_data(
            rows, target="y", task=REGRESSION, seed=0, weight=weight, features=("x0", "x1", "x2"), drop=("w",)
        )
        everything = np.arange(len(rows))
        data = replace(data, split=Split(everything, everything, ()))
        _, rows_in, rows_out = data.whole(ridge)
        model = ridge.fit({"alpha": 1e-9}, rows_in, data.task, 0)
        return model.coef_ / data.whole(ridge)[0].spread, metric.score(
            rows_out.y, ridge.predict(model, rows_out, data.task), rows_out.weight
        )

    heavy = scored(frame.assign(w=np.where(frame["x0"] > 0, 2.0, 1.0)), "w")
    twice = scored(doubled, None)
    assert np.allclose(heavy[0], twice[0])  # a weight of 2 is the same as being there twice
    assert heavy[1] == pytest.approx(twice[1])
    assert not np.allclose(heavy[0], scored(frame, None)[0])


def test_class_weights_are_for_fitting_only() -> None:
    frame = table()
    plain = prepare_data(frame, target="c", task=BINARY, seed=0)
    balanced = prepare_data(frame, target="c", task=BINARY, seed=0, class_weight="balanced")
    named = prepare_data(frame, target="c", task=BINARY, seed=0, class_weight={"yes": 5})
    logistic = family("logistic")
    assert plain.folds(logistic)[0][0].weight is None
    learned, predicted = balanced.folds(logistic)[0]
    assert learned.weight[learned.y == 1].sum() == pytest.approx(learned.weight[learned.y == 0].sum())
    assert predicted.weight is None
    assert set(named.folds(logistic)[0][0].weight) == {1.0, 5.0}
    recall = Metric("recall", plain.task)
    config = {"model": "logistic", "C": 1.0}
    scores = [list(train(config, data, recall, 0))[-1].score for data in (plain, balanced)]
    assert scores[1] > scores[0]


def test_folds_in_which_a_metric_is_undefined_are_left_out_and_said() -> None:
    frame = table(120).sort_values("day", ignore_index=True)
    frame["c"] = np.where((frame.index > 60) & (frame.index % 2 == 0), "yes", "no")
    made = define({"data": "x", "target": "c", "split": {"type": "time", "column": "day", "folds": 5}})
    data = study_data(frame, made, BINARY, 0)
    kept = keep_scorable_folds(data, Metric("roc_auc", data.task))
    assert 0 < len(kept.split.folds) < len(data.split.folds)
    assert kept.notes[-1].code is DataCode.FOLDS_UNDEFINED
    assert keep_scorable_folds(data, Metric("accuracy", data.task)) is data
    frame["c"] = np.where(frame.index > 95, "yes", "no")
    early = study_data(frame, made, BINARY, 0)
    with pytest.raises(CustomerError, match="roc_auc is not defined in any of the"):
        keep_scorable_folds(early, Metric("roc_auc", early.task))


def test_a_fold_whose_rows_of_a_class_weigh_nothing_is_left_out_as_well() -> None:
    frame = table(120).sort_values("day", ignore_index=True)
    made = define({"data": "x", "target": "c", "weight": "w", "split": {"type": "time", "column": "day"}})
    whole = study_data(frame, made, BINARY, 0)
    roc_auc = Metric("roc_auc", whole.task)
    assert len(keep_scorable_folds(whole, roc_auc).split.folds) == 3
    frame.loc[whole.split.search[whole.split.folds[-1][1]], "w"] *= frame["c"] == "no"
    data = keep_scorable_folds(study_data(frame, made, BINARY, 0), roc_auc)
    assert len(data.split.folds) == 2
    assert np.isfinite(list(train({"model": "logistic"}, data, roc_auc, 0))[-1].score)


def test_a_weighted_log_loss_needs_no_rows_of_every_class_as_an_unweighted_one_does_not() -> None:
    task = Task(MULTICLASS, ("a", "b", "c"))
    y, proba = np.array([0, 1, 1]), np.array([[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])
    said, weight = Prediction(values=proba.argmax(axis=1), proba=proba), np.array([1.0, 2.0, 0.5])
    wanted = log_loss(y, proba, sample_weight=weight, labels=[0, 1, 2])
    assert Metric("log_loss", task).score(y, said, weight) == pytest.approx(wanted)


# --- metrics ------------------------------------------------------------------------------------


@pytest.fixture
def own_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("own_metrics")

    def cost(y_true: np.ndarray, y_pred: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
        costs = np.where((y_true == "yes") & (y_pred == "no"), 5.0, y_true != y_pred)
        return float(np.average(costs, weights=sample_weight))

    def mean_confidence(y_true: np.ndarray, y_pred: np.ndarray) -> float:
        return float(np.where(y_true == "yes", y_pred, 1 - y_pred).mean())

    mean_confidence.needs_proba = True
    module.cost, module.confidence = cost, mean_confidence
    module.f2 = make_scorer(fbeta_score, beta=2, pos_label="yes")
    monkeypatch.setitem(sys.modules, "own_metrics", module)


def test_a_users_function_sees_labels_probabilities_and_weights(own_metrics: None) -> None:
    module = sys.modules["own_metrics"]
    task = Task(BINARY, ("no", "yes"))
    y = np.array([0, 1, 1, 0])
    said = Prediction(np.array([0, 0, 1, 1]), np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]]))
    assert Metric("own_metrics:cost", task, module.cost).score(y, said) == 6 / 4
    assert Metric("own_metrics:cost", task, module.cost).score(y, said, np.array([1, 1, 1, 3])) == 8 / 6
    assert Metric("m", task, module.confidence).score(y, said) == pytest.approx((0.9 + 0.4 + 0.8 + 0.3) / 4)
    assert Metric("m", task, module.f2).score(y, said) == pytest.approx(fbeta_score([0, 1, 1, 0], [0, 0, 1, 1], beta=2))
    assert Metric("m", Task(REGRESSION), mean_absolute_error).score(np.array([1.0]), Prediction(np.array([3.0]))) == 2


@pytest.mark.parametrize(
    "said", [None, [0.5], np.array([0.5]), 1j, np.complex64(1), "much", ValueError("never"), SystemExit(3)], ids=repr
)
def test_a_plan_refuses_a_metric_that_cannot_work(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def mine(y_true: np.ndarray, y_pred: np.ndarray) -> Any:
        if isinstance(said, BaseException):
            raise said
        return said

    monkeypatch.setitem(sys.modules, "own_metrics", types.ModuleType("own_metrics"))
    vars(sys.modules["own_metrics"])["mine"] = mine
    for target in ("c", "y"):
        with pytest.raises(PlanError, match=r"metric: own_metrics:mine cannot score .* has to return a number"):
            make_plan(define({"data": table(), "target": target, "metric": "own_metrics:mine"}))


@pytest.mark.parametrize("said", [0.5, 1, True, np.float32(0.5), np.array(0.5), Decimal("0.5")], ids=repr)
def test_a_users_metric_may_return_any_number(said: Any) -> None:
    assert Metric("m", Task(REGRESSION), lambda *_: said).score(np.zeros(2), Prediction(np.zeros(2))) == said


def test_a_prediction_of_nan_is_said_to_be_the_models() -> None:
    said = Prediction(np.array([1.0, np.nan, 3.0]))
    with pytest.raises(ValueError, match="the model predicts NaN for 1 of 3 rows"):
        Metric("rmse", Task(REGRESSION)).score(np.zeros(3), said)
    unsure = Prediction(np.array([0, 1]), np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="the model predicts probabilities of NaN for 2 of 2 rows"):
        Metric("roc_auc", Task(BINARY, ("no", "yes"))).score(np.array([0, 1]), unsure)


@pytest.mark.parametrize("kind", [REGRESSION, BINARY])
def test_what_a_users_function_writes_into_its_arguments_changes_no_other_score(kind: str) -> None:
    def careless(y_true: np.ndarray, y_pred: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
        score = float(np.average(y_true == (y_pred > 0.5), weights=sample_weight))
        for each in (y_true, y_pred, sample_weight):
            each[:] = 0
        return score

    classes = kind == BINARY
    careless.needs_proba = classes
    y, weight, values = np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0])
    said = Prediction(values, np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]]) if classes else None)
    task = Task(kind, (0, 1)) if classes else Task(kind)
    metric = Metric("m", task, careless)
    assert [metric.score(y, said, weight) for _ in range(2)] == [0.5, 0.5]


def test_recall_is_that_of_the_positive_class_whatever_it_is_called() -> None:
    frame = pd.DataFrame({"x": np.arange(40.0), "y": ["churned"] * 10 + ["stayed"] * 30})
    data = prepare_data(frame, target="y", task=BINARY, seed=0)
    nobody = Prediction(values=np.zeros(len(data.y), dtype=int))
    assert data.task.classes == ("stayed", "churned")
    assert Metric("recall", data.task).score(data.y, nobody) == 0.0, "nobody is said to churn"
    other = prepare_data(frame, target="y", task=BINARY, seed=0, positive="stayed")
    assert Metric("recall", other.task).score(other.y, nobody) == 0.0
    assert data.y.sum() == 10
    assert other.y.sum() == 30


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_a_users_scorer_sees_classes_in_the_order_that_scikit_learn_gives_them(method: str) -> None:
    task = Task(BINARY, ("stayed", "churned"))
    y = np.array([0, 1, 0, 1])
    sure = np.array([0.1, 0.9, 0.2, 0.8])
    said = Prediction(values=y, proba=np.column_stack([1 - sure, sure]), decision=sure - 0.5)
    scorer = make_scorer(roc_auc_score, response_method=method)
    assert Metric("m:auc", task, scorer).score(y, said) == 1.0
    precision = make_scorer(precision_score, pos_label="churned")
    assert Metric("m:precision", task, precision).score(y, said) == 1.0


def test_a_users_metric_may_be_better_when_smaller(own_metrics: None) -> None:
    made = define({"data": table(), "target": "c", "metric": "own_metrics:cost", "mode": "min"})
    plan = make_plan(made)
    assert (plan.spec.metric, plan.spec.mode) == ("own_metrics:cost", "min")


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"metric": "f1-score"}, DefinitionError, "'f1-score' is not a scikit-learn scorer. Did you mean 'f1'"),
        (
            {"metric": "roc_auc", "target": "y"},
            DefinitionError,
            "'roc_auc' does not fit regression: it is for binary.",
        ),
        (
            {"metric": "r2"},
            DefinitionError,
            "'r2' does not fit binary: it is for regression. The default for binary is 'roc_auc'.",
        ),
        ({"metric": "rmse", "mode": "min", "target": "y"}, PlanError, "it is known which scores are better"),
        ({"metric": "own_metrics:nothing"}, DefinitionError, "has no attribute 'nothing'"),
        ({"metric": "neg_max_error", "target": "y", "weight": "w"}, DefinitionError, "takes no sample weights"),
        ({"target": "y", "class_weight": "balanced"}, PlanError, "there are no classes"),
        ({"target": "y", "split": "stratified"}, PlanError, "stratified needs classes"),
        ({"class_weight": {"yes": -1}}, DefinitionError, "the weight of class 'yes' is -1"),
    ],
)
def test_what_does_not_fit_the_task_is_refused_in_the_plan(
    own_metrics: None, fields: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make_plan(define({"data": table(), "target": "c", **fields}))

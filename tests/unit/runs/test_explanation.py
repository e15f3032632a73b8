"""Why a winner says what it says, and scikit-learn's own tools on a customer's model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import tuner_of, valley
from click.testing import CliRunner
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import r2_score

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.errors import CustomerError, NoModelError, RunError
from tuning.models.customer_model import CustomerModel
from tuning.preprocessing.task import Prediction
from tuning.runs.explanation import Winner, Winners
from tuning.runs.plan_file import read_plan
from tuning.runs.plots import column_importance

PREPARE = "def prepare(frame):\n    return frame.assign(twice=2 * frame['x']).drop(columns='x')\n"


def rows(seed: int, count: int = 80) -> pd.DataFrame:
    """`y` is 5 x, and 3 more in Oslo; `noise` says nothing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=count), "noise": rng.normal(size=count)})
    frame["city"] = rng.choice(["oslo", "rome"], count)
    frame["y"] = 5 * frame["x"] + 3 * (frame["city"] == "oslo") + rng.normal(scale=0.3, size=count)
    return frame


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("explained")
    for seed, name in enumerate(["a", "b", "c"]):
        rows(seed).to_csv(folder / f"{name}.csv", index=False)
    rows(9).assign(y=1.0).to_csv(folder / "none.csv", index=False)
    models = ["ridge", "knn", "extra_trees"]
    runner = TuneRunner(
        data=str(folder / "*.csv"), target="y", metric="r2", models=models, trials=5, mlflow=False, report=False
    )
    return runner.run(folder / "run", in_process=True, progress=False)


@pytest.mark.long
def test_the_columns_that_decide_are_found(result: RunResult) -> None:
    table = result.customer("a").importance()
    assert table["column"].tolist()[:2] == ["x", "city"]
    assert table.set_index("column")["matters"].to_dict() == {"x": True, "city": True, "noise": False}
    assert column_importance(table).get_yticklabels()[-1].get_text() == "x"


@pytest.mark.long
def test_all_repeats_of_a_column_are_one_question_and_say_what_scikit_learn_says(
    result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    winner = result.customer("a").explained()
    names = [column.name for column in winner.model.columns]
    theirs = permutation_importance(
        winner.model, winner.rows[names], winner.y, scoring="r2", n_repeats=200, random_state=0
    )
    asked: list[int] = []
    answer = CustomerModel.prediction

    def counted(model: CustomerModel, rows: pd.DataFrame) -> Prediction:
        asked.append(len(rows))
        return answer(model, rows)

    monkeypatch.setattr(CustomerModel, "prediction", counted)
    assert len(winner.answers.values) == len(winner.rows)
    asked.clear()
    ours = winner.importance(repeats=200).set_index("column")["importance"]
    assert asked == [200 * len(winner.rows)] * len(names)
    np.testing.assert_allclose(ours[names], theirs.importances_mean, atol=0.05)
    monkeypatch.setattr("tuning.runs.explanation.MOST_ASKED", 3 * len(winner.rows))
    asked.clear()
    winner.importance(repeats=6)
    assert asked == [3 * len(winner.rows)] * 2 * len(names)


def test_what_is_explained_is_the_model_that_was_scored(result: RunResult) -> None:
    customer = result.customer("b")
    assert customer.study is not None
    plan = read_plan(result.directory, result.term)
    winner = Winners(result.directory, plan, ["b"]).of(customer.study, customer.trial_records)
    assert winner.metric.score(winner.y, winner.model.prediction(winner.rows)) == customer.study.test_score


def test_what_cancels_out_is_nothing(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    shuffled = np.array([[0.5, 0.7], [1e-17, -3e-17], [1e-4, 3e-4]])
    monkeypatch.setattr(Winner, "_falls", lambda *_: shuffled)
    table = result.customer("a").importance()
    assert table["importance"].tolist() == [pytest.approx(0.6), pytest.approx(2e-4), 0.0]
    assert table["std"].iloc[-1] == 0.0


def test_the_prediction_follows_a_column(result: RunResult) -> None:
    curve = result.customer("a").partial_dependence("x")
    assert curve["value"].is_monotonic_increasing
    rise = curve["prediction"].iloc[-1] - curve["prediction"].iloc[0]
    assert rise == pytest.approx(5 * (curve["value"].iloc[-1] - curve["value"].iloc[0]), rel=0.3)
    cities = result.customer("a").partial_dependence("city").set_index("value")["prediction"]
    assert cities["oslo"] - cities["rome"] == pytest.approx(3, rel=0.5)
    with pytest.raises(RunError, match="'z' is no column of the model; it has 'x'"):
        result.customer("a").partial_dependence("z")


@pytest.mark.parametrize("typed", [False, True])
def test_the_prediction_follows_dates(tmp_path: Path, typed: bool) -> None:
    days = pd.Series(pd.date_range("2024-01-01", periods=200))
    frame = pd.DataFrame({"day": days if typed else days.dt.strftime("%d.%m.%Y"), "y": np.arange(200.0)})
    runner = TuneRunner(data=frame, target="y", models=["ridge"], trials=1, mlflow=False, report=False)
    found = runner.run(tmp_path / "run", in_process=True, progress=False).customer()
    curve = found.partial_dependence("day")
    assert len(curve) == 20
    assert curve["value"].is_monotonic_increasing
    assert curve["value"].iloc[0] < pd.Timestamp("2024-02-01") < pd.Timestamp("2024-06-01") < curve["value"].iloc[-1]
    assert curve["prediction"].diff().dropna().median() == pytest.approx(10, rel=0.3)  # a day is 1 more


def test_it_is_counted_for_how_many_customers_a_column_matters(result: RunResult) -> None:
    table = result.importance().set_index("column")
    assert table["matters_for"].to_dict() == {"x": 3, "city": 3, "noise": 0}
    assert table["customers"].tolist() == [3, 3, 3]
    assert result.importance(most=1)["customers"].tolist() == [1, 1, 1]


def test_the_command_tells_the_same(result: RunResult) -> None:
    run = result.directory.shown
    told = CliRunner().invoke(main, ["explain", run, "--customer", "a", "--output", "csv"]).stdout
    assert told.splitlines()[1].startswith("x,")
    assert CliRunner().invoke(main, ["explain", run]).stdout.splitlines()[1].split()[:3] == ["x", "3", "3"]
    curve = CliRunner().invoke(main, ["explain", run, "--customer", "a", "--column", "city"]).stdout
    assert [line.split()[0] for line in curve.splitlines()] == ["value", "oslo", "rome"]


def test_there_is_a_reason_where_nothing_can_be_explained(result: RunResult, tmp_path: Path) -> None:
    with pytest.raises(NoModelError, match="customer 'none' has no model to explain: the target 'y' is constant"):
        result.customer("none").importance()
    tuned = tuner_of(valley, trials=2).run(tmp_path / "run", in_process=True, progress=False)
    with pytest.raises(NoModelError, match="an objective was tuned"):
        tuned.customer().importance()


def test_rows_that_have_changed_since_are_not_explained(tmp_path: Path) -> None:
    rows(0).to_csv(tmp_path / "a.csv", index=False)
    rows(1).to_csv(tmp_path / "b.csv", index=False)
    runner = TuneRunner(
        data=str(tmp_path / "*.csv"), target="y", models=["ridge"], trials=2, mlflow=False, report=False
    )
    result = runner.run(tmp_path / "run", in_process=True, progress=False)
    rows(2, 90).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(CustomerError, match="the data has changed"):
        result.customer("a").importance()
    table = result.importance()
    assert table["customers"].tolist() == [1, 1, 1]
    assert list(table.attrs["left_out"]) == ["a"]


@pytest.mark.long
def test_columns_are_those_that_prepare_makes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PREPARE)
    rows(0).to_csv(tmp_path / "a.csv", index=False)
    fields = {"data": str(tmp_path / "a.csv"), "target": "y", "models": ["ridge"], "trials": 2, "mlflow": False}
    runner = TuneRunner(**fields, prepare=f"{tmp_path / 'mine.py'}:prepare", report=False)
    result = runner.run(tmp_path / "run", in_process=True, progress=False)
    assert result.customer().importance()["column"].tolist() == ["twice", "city", "noise"]


def test_scikit_learns_tools_take_a_customers_model(result: RunResult) -> None:
    model, new = result.model("a"), rows(5)
    assert is_regressor(model)
    assert clone(model) is model is model.fit()
    with pytest.warns(UserWarning, match="is fitted already, and fit learns nothing from these rows"):
        assert model.fit(new, new["y"]) is model
    assert model.score(new, new["y"]) == r2_score(new["y"], model.predict(new))
    assert {"predict", "columns"} <= set(dir(model))
    assert "prediction" not in dir(model)
    with pytest.raises(AttributeError, match=r"no 'feature_importances_'. Here it is result.customer\('acme'\).imp"):
        model.feature_importances_  # noqa: B018  # what a user of scikit-learn types
    X = new.drop(columns="y")
    found = permutation_importance(model, X, new["y"], random_state=0)
    assert X.columns[found.importances_mean.argmax()] == "x"
    assert partial_dependence(model, X, ["x"])["average"].shape[1] > 10


def test_a_classifier_has_its_classes(tmp_path: Path) -> None:
    frame = rows(0).assign(y=lambda frame: np.where(frame["y"] > 0, "yes", "no"))
    runner = TuneRunner(data=frame, target="y", models=["logistic"], trials=2, mlflow=False, report=False)
    result = runner.run(tmp_path / "run", in_process=True, progress=False)
    model = result.model()
    assert is_classifier(model)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(frame, frame["y"]) == (model.predict(frame) == frame["y"]).mean() > 0.9
    curve = partial_dependence(model, frame.drop(columns="y"), ["x"], response_method="predict_proba")
    assert curve["average"][0][-1] > curve["average"][0][0]  # of "yes"
    assert result.customer().partial_dependence("x")["prediction"].between(0, 1).all()


def test_what_scikit_learn_warns_of_is_not_said_beside_what_is_explained(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    rng = np.random.default_rng(0)
    rare = np.where(rng.random(80) < 0.1, "rare", np.where(rows(0)["x"] > 0, "up", "down"))
    runner = TuneRunner(
        data=rows(0).assign(y=rare), target="y", metric="precision_macro", models=["logistic"], trials=1,
        ensemble="none", portfolio="none", mlflow=False, report=False,
    )  # fmt: skip
    result = runner.run(tmp_path / "run", in_process=True, progress=False)
    model = result.customer().explained()
    assert "rare" not in set(model.hold_out()["prediction"]), "or nothing would be warned of"
    recwarn.clear()
    model.importance()
    assert [str(each.message) for each in recwarn] == []

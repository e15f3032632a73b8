"""New rows through a run's models: the same answer from the command, from Python and from MLflow's loader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import make_frame
from click.testing import CliRunner, Result
from paths import ROOT
from sklearn.linear_model import LinearRegression

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.data.registry import file_formats, suffixes
from tuning.errors import CustomerError, DefinitionError
from tuning.notes import DataCode, EndCode
from tuning.tracking.loader import _load_pyfunc

QUICK = {
    "algorithm": "random", "scheduler": "fifo", "trials": 2, "mlflow": False, "report": False, "slots": 1,
    "search_space": "ridge",
    "task": "regression", "target": "y",
}  # fmt: skip


def run(folder: Path, **fields: Any) -> RunResult:
    return TuneRunner(**{**QUICK, **fields}).run(str(folder / "run"), in_process=True, progress=False)


def predict(result: RunResult, *arguments: str | Path) -> Result:
    answer = CliRunner().invoke(main, ["predict", result.directory.root, *map(str, arguments)])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    return answer


# --- prepare --------------------------------------------------------------------------------------


def trips(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    """Trips with the TLC's column names."""
    rng = np.random.default_rng(seed)
    pickup = pd.Timestamp(2019, 3, 1) + pd.to_timedelta(rng.integers(0, 86400 * 9, rows), unit="s")
    distance = rng.lognormal(size=rows).round(2)
    seconds = pd.to_timedelta((60 + 300 * distance).round(), unit="s")
    return pd.DataFrame(
        {
            "tpep_pickup_datetime": pickup,
            "tpep_dropoff_datetime": pickup + seconds,
            "passenger_count": rng.integers(1, 5, rows),
            "trip_distance": distance,
            "PULocationID": np.resize([7, 41, 79], rows),
            "DOLocationID": rng.integers(1, 200, rows),
        }
    )


def test_the_shipped_example_predicts_trips_that_have_not_ended(tmp_path: Path) -> None:
    trips().to_csv(tmp_path / "trips.csv", index=False)
    quick = {name: value for name, value in QUICK.items() if name not in ("task", "target")}
    runner = TuneRunner.from_yaml(ROOT / "examples" / "nyc_taxi.yaml", data=str(tmp_path / "trips.csv"), **quick)
    result = runner.run(str(tmp_path / "run"), in_process=True, progress=False)
    new = trips(seed=1).drop(columns="tpep_dropoff_datetime")
    new.to_csv(tmp_path / "new.csv", index=False)
    answer = predict(result, "--data", tmp_path / "new.csv", "--output", tmp_path / "out.csv")
    assert answer.exit_code == 0, answer.stderr
    out = pd.read_csv(tmp_path / "out.csv")
    assert list(out.columns) == [*new.columns, "prediction"]
    for zone, rows in new.groupby("PULocationID"):
        model = result.model(str(zone))
        expected = out.loc[rows.index, "prediction"]
        np.testing.assert_allclose(model.predict(rows), expected)
        np.testing.assert_allclose(model.predict(rows.drop(columns="PULocationID")), expected)
        path = result.leaderboard().set_index("customer").loc[str(zone), "model_path"]
        np.testing.assert_allclose(_load_pyfunc(result.directory.path(path)).predict(rows), expected)
        one = predict(result, "--customer", zone, "--data", tmp_path / "new.csv", "--output", tmp_path / "one.csv")
        assert one.exit_code == 0, one.stderr
        np.testing.assert_allclose(pd.read_csv(tmp_path / "one.csv").loc[rows.index, "prediction"], expected)
    absent = predict(result, "--customer", 41, "--data", _without(tmp_path, new, "trip_distance"))
    assert absent.exit_code == 2
    assert "columns are missing: 'trip_distance'" in absent.stderr


def _without(folder: Path, rows: pd.DataFrame, name: str) -> Path:
    rows.drop(columns=name).to_csv(folder / "less.csv", index=False)
    return folder / "less.csv"


PREPARE = """
import numpy as np

def twice(frame):
    return frame.assign(y=frame["raw"] * 2, double=frame["x"] * 2, late=frame["x"].shift(1)).sort_values("x")

def known(frame):
    return frame.assign(y=frame["raw"], known=frame["hint"].notna().astype(float) * frame["x"])

def positive(frame):
    return frame.assign(y=frame["raw"]).query("y > 0")

def forgetful(frame):
    return twice(frame).reset_index(drop=True)

def merged(frame):
    towns = frame[["shop"]].drop_duplicates().assign(town="here")
    return twice(frame).sort_index().merge(towns, on="shop", how="left")[["y", "x", "town", "raw"]].round(2)

def in_place(frame):
    frame["y"] = frame["raw"]
    frame["double"] = 2 * frame["x"]
    frame["x"] /= 100
    return frame

def centred(frame):
    return frame.assign(y=frame["raw"], above=frame["x"] - frame["x"].mean(), before=frame["x"].shift(1))[::-1]

def renumbered(frame):
    return centred(frame).reset_index(drop=True)

def filtered(frame):
    return centred(frame)[["y", "x", "shop", "above", "raw"]].query("x > -1").sort_values("shop", ignore_index=True)

def named(frame):
    return frame.assign(y=frame["raw"], **{"x": frame["x"]}).set_axis(["0", *range(1, len(frame.columns) + 1)], axis=1)
"""


def prepared(folder: Path, function: str) -> RunResult:
    (folder / "prepare.py").write_text(PREPARE)
    frame = make_frame().drop(columns="empty").rename(columns={"y": "raw"}).assign(hint=1.0)
    return run(folder, data={"acme": frame}, prepare=f"{folder}/prepare.py:{function}", drop="raw")


def test_every_row_keeps_its_place_however_prepare_sorts_them(tmp_path: Path) -> None:
    model = prepared(tmp_path, "twice").model("acme")
    new = make_frame(20, seed=4)[["x", "shop"]].assign(hint=1.0)
    told = model.predict(new)
    assert np.corrcoef(told, 2 * 3 * new["x"])[0, 1] > 0.9
    np.testing.assert_allclose(model.predict(new.set_index(np.arange(20)[::-1])), told)


def test_rows_that_prepare_sorts_and_numbers_anew_are_refused_in_place_of_other_rows_predictions(
    tmp_path: Path,
) -> None:
    model = prepared(tmp_path, "forgetful").model("acme")
    new = make_frame(20, seed=4)[["x", "shop"]].assign(hint=1.0)
    with pytest.raises(CustomerError, match=r"an order and an index of its own, .* Leave out its reset_index"):
        model.predict(new)
    ordered = new.sort_values("x")
    assert np.corrcoef(model.predict(ordered), ordered["x"])[0, 1] > 0.9
    assert len(model.predict(new[:1])) == 1


def test_rows_that_prepare_only_numbers_anew_are_predicted(tmp_path: Path) -> None:
    model = prepared(tmp_path, "merged").model("acme")
    new = make_frame(20, seed=4)[["x", "shop"]].assign(hint=1.0)
    assert np.corrcoef(model.predict(new), new["x"])[0, 1] > 0.9


def test_prepare_may_change_what_it_gets(tmp_path: Path) -> None:
    model = prepared(tmp_path, "in_place").model("acme")
    new = make_frame(20, seed=4)[["x", "shop"]].assign(hint=1.0)
    assert np.corrcoef(model.predict(new), new["x"])[0, 1] > 0.9
    assert list(new) == ["x", "shop", "hint"]
    assert model.example is not None
    assert "double" not in model.example
    assert model.example["x"].tolist() == pytest.approx(make_frame()["x"][:5].tolist())


@pytest.mark.parametrize(
    ("function", "made"),
    [
        ("centred", "'above', 'before'"),
        ("renumbered", "'above', 'before'"),
        ("filtered", "'above'"),
        ("in_place", ""),
        ("merged", ""),
        ("forgetful", ""),
    ],
)
def test_features_that_prepare_makes_of_several_rows_are_told(function: str, made: str, tmp_path: Path) -> None:
    """Their scores know the hold-out rows, and a row alone gets another prediction."""
    notes = prepared(tmp_path, function).leaderboard()["notes"][0]
    assert (f"prepare makes {made} of more than one row" in str(notes)) == bool(made)


def test_a_column_of_which_prepare_makes_features_is_missed_by_name(tmp_path: Path) -> None:
    """Empty, it would make other features and say nothing."""
    model = prepared(tmp_path, "known").model("acme")
    new = make_frame(5)[["x", "shop"]]
    assert len(model.predict(new.assign(hint=2.0))) == 5
    with pytest.raises(CustomerError, match="columns are missing: 'hint'; without them prepare does not make 'kn"):
        model.predict(new)


def test_prepare_that_drops_rows_is_told_what_to_do(tmp_path: Path) -> None:
    model = prepared(tmp_path, "positive").model("acme")
    with pytest.raises(CustomerError, match=r"prepare returned 0 rows for 5; .* Let it empty the target of rows"):
        model.predict(make_frame(5)[["x", "shop"]].assign(hint=1.0))


def test_names_that_prepare_gives_are_text(tmp_path: Path) -> None:
    (tmp_path / "prepare.py").write_text(PREPARE)
    frame = make_frame().drop(columns="empty").rename(columns={"y": "raw"})
    result = run(tmp_path, data={"acme": frame}, prepare=f"{tmp_path}/prepare.py:named", target="3", drop="2")
    assert result.leaderboard()["status"].tolist() == ["ok"]
    assert len(result.model("acme").predict(frame[["x", "shop"]])) == 60


# --- names ----------------------------------------------------------------------------------------


def test_no_column_of_the_rows_is_overwritten(tmp_path: Path) -> None:
    frame = make_frame().assign(prediction=1.0, y=lambda rows: np.where(rows["x"] > 0, "a", "b"))
    result = run(tmp_path, data={"acme": frame}, task="binary", search_space="logistic")
    rows = frame.assign(prediction=np.arange(60.0), probability_a="mine")
    rows.to_csv(tmp_path / "new.csv", index=False)
    answer = predict(result, "--customer", "acme", "--data", tmp_path / "new.csv", "--output", tmp_path / "out.parquet")
    assert answer.exit_code == 0
    assert "the predictions are in 'prediction_2': the rows have a column 'prediction'" in answer.stderr
    out = pd.read_parquet(tmp_path / "out.parquet")
    assert out["prediction"].tolist() == rows["prediction"].astype(str).tolist(), "a CSV's cells are text"
    assert set(out["probability_a"]) == {"mine"}
    assert set(out["prediction_2"]) <= {"a", "b"}
    np.testing.assert_allclose(out["probability_a_2"] + out["probability_b"], 1)
    refused = predict(result, "--customer", "acme", "--data", tmp_path / "new.csv", "--interval", "0.8")
    assert refused.exit_code == 2
    assert "interval: it is for numbers" in refused.stderr
    assert "probability_…" in refused.stderr


def test_intervals_stand_beside_the_predictions_of_each_rows_own_model(tmp_path: Path) -> None:
    table = pd.concat([make_frame(40, seed).assign(id=name) for seed, name in enumerate("ab")], ignore_index=True)
    result = run(tmp_path, data=table, by="id")
    new = pd.concat([table.drop(columns="y"), table[:1].assign(id="c")]).assign(prediction_low="mine")
    new.to_csv(tmp_path / "new.csv", index=False)
    answer = predict(result, "--data", tmp_path / "new.csv", "--output", tmp_path / "out.csv", "--interval", "0.9")
    assert answer.exit_code == 3, "c has no model"
    out = pd.read_csv(tmp_path / "out.csv")
    assert out["prediction_low"].eq("mine").all()
    assert out.loc[80, ["prediction", "prediction_low_2", "prediction_high"]].isna().all()
    for name in "ab":
        rows = out[out["id"] == name]
        told = result.model(name).predict(new[new["id"] == name], interval=0.9)
        np.testing.assert_allclose(rows["prediction_low_2"], told["prediction_low"])
        np.testing.assert_allclose(rows["prediction_high"], told["prediction_high"])
    refused = predict(result, "--data", tmp_path / "new.csv", "--interval", "90")
    assert (refused.exit_code, "90 % is 0.9" in refused.stderr) == (2, True)


@pytest.mark.parametrize("name", ["p.xyz", "p", "p.csv.zip", "p.json"])
def test_an_output_of_no_format_is_refused_before_work(name: str, tmp_path: Path) -> None:
    answer = CliRunner().invoke(main, ["predict", "nowhere", "--data", "nothing.csv", "--output", name])
    assert answer.exit_code == 2
    titles = " nor ".join(each.title for each in file_formats())
    assert f"--output: '{name}' is neither {titles}; end it in one of {', '.join(suffixes())}." in answer.stderr


# --- kinds ----------------------------------------------------------------------------------------


def test_one_customers_bad_cells_cost_nobody_else_the_prediction(tmp_path: Path) -> None:
    table = pd.concat([make_frame(40, seed).assign(id=name) for seed, name in enumerate("abc")])
    table.to_csv(tmp_path / "t.csv", index=False)
    result = run(tmp_path, data=str(tmp_path / "t.csv"), by="id")
    new = table.groupby("id").head(20).astype({"x": object}).reset_index(drop=True)
    new.loc[3, "x"] = "n.a.?"
    new.loc[new["id"] == "c", "x"] = "lost"
    new.to_csv(tmp_path / "new.csv", index=False)
    found = result.predicted(str(tmp_path / "new.csv"))
    (why,) = found.without.values()
    assert ([*found.without], why.code, why.subject) == (["c"], DataCode.COLUMN_CHANGED, "x")
    assert found.rows["prediction"].notna().tolist() == [*[True] * 40, *[False] * 20]
    clean = table[table["id"] == "b"].head(20)
    np.testing.assert_array_equal(found.rows["prediction"][20:40], result.model("b").predict(clean))


def test_a_frame_goes_through_each_customers_own_model_from_python(tmp_path: Path) -> None:
    table = pd.concat([make_frame(40, seed).assign(id=seed) for seed in (7, 8)])
    result = run(tmp_path, data=table, by="id", bounds=[-1, 1])
    new = pd.concat([table.groupby("id").head(20), make_frame(2).assign(id=9)]).sample(frac=1, random_state=0)
    found = result.predict(new)
    pd.testing.assert_frame_equal(found[new.columns], new)
    for customer in (7, 8):
        rows = new["id"] == customer
        np.testing.assert_array_equal(found["prediction"][rows], result.model(customer).predict(new[rows]))
    assert found["prediction"][new["id"] == 9].isna().all()
    assert list(found.attrs["without"]) == ["9"]
    assert found.attrs["held_back"] == found["prediction"].isin([-1, 1]).sum() > 0
    new.to_parquet(tmp_path / "new.parquet")
    np.testing.assert_array_equal(result.predict(tmp_path / "new.parquet")["prediction"], found["prediction"])
    one = result.predict(new[:5].drop(columns="id"), 8)
    assert one.index.equals(new.index[:5])
    np.testing.assert_array_equal(one["prediction"], result.model(8).predict(new[:5]))


@pytest.mark.parametrize("space", ["ridge", "lightgbm"])
def test_a_text_that_no_training_row_had_is_said(space: str, tmp_path: Path) -> None:
    table = pd.concat([make_frame(60, seed).assign(id=seed) for seed in (7, 8)])
    table.loc[table.index[5:8], "shop"] = None
    result = run(tmp_path, data=table, by="id", search_space=space)
    new = table.groupby("id").head(20).reset_index(drop=True)
    assert result.predict(new).attrs["unseen"] == {}
    new.loc[[1, 2, 30], "shop"] = "c"
    assert result.predict(new).attrs["unseen"] == {"shop": 3}
    new.to_csv(tmp_path / "new.csv", index=False)
    said = "texts that no model here was trained with, and so knows nothing of: 'shop' in 3 rows"
    assert said in predict(result, "--data", tmp_path / "new.csv").stderr
    assert result.model(7).predict(new[:20]).shape == (20,)


def test_texts_that_share_a_place_are_not_called_new(tmp_path: Path) -> None:
    frame = make_frame(300)
    frame["shop"] = [f"shop {number % 40}" for number in range(300)]  # more than have a column each
    result = run(tmp_path, data=frame)
    assert result.predict(frame.assign(shop="another")).attrs["unseen"] == {}


def test_of_customers_who_are_files_one_is_named_and_the_only_one_is_not(tmp_path: Path) -> None:
    for name in "ab":
        make_frame(40).to_csv(tmp_path / f"{name}.csv", index=False)
    only = run(tmp_path / "one", data=str(tmp_path / "a.csv"))
    np.testing.assert_array_equal(only.predict(make_frame(5))["prediction"], only.model().predict(make_frame(5)))
    assert predict(only, "--data", tmp_path / "b.csv").exit_code == 0
    both = run(tmp_path / "both", data=str(tmp_path / "*.csv"))
    with pytest.raises(DefinitionError, match="`customer` is needed: the run's customers are files"):
        both.predict(make_frame(5))
    assert "--customer is needed" in predict(both, "--data", tmp_path / "b.csv").stderr


class Choosy(LinearRegression):
    """Predicts some rows only."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        if np.abs(X).max() > 1e6:
            raise ZeroDivisionError("far out")
        return super().predict(X)


def test_one_customers_own_model_that_raises_costs_nobody_else_the_prediction(tmp_path: Path) -> None:
    table = pd.concat([make_frame(20, seed).assign(id=name) for seed, name in enumerate("abc")])
    fields = {"search_space": None, "models": [Choosy()], "allow_code": True, "algorithm": "grid", "trials": 1}
    result = run(tmp_path, data=table, by="id", **fields)
    table["x"] = table["x"].where(table["id"] != "b", 1e12)
    table.to_csv(tmp_path / "new.csv", index=False)
    found = result.predicted(str(tmp_path / "new.csv"), allow_code=True)
    assert found.without == {"b": EndCode.RAISED("ZeroDivisionError", error="ZeroDivisionError: far out")}
    assert found.rows["prediction"].notna().tolist() == (table["id"] != "b").tolist()


def test_dates_are_read_at_predict_time_as_they_were_fitted(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-03", periods=60)
    frame = make_frame().assign(day=days.strftime("%d.%m.%Y"), y=np.arange(60.0))
    frame.to_csv(tmp_path / "acme.csv", index=False)
    result = run(tmp_path, data=str(tmp_path / "acme.csv"))
    model = result.model("acme")
    assert [(column.kind, column.format) for column in model.columns if column.name == "day"] == [("date", "%d.%m.%Y")]
    early = frame[:3]  # of which no value shows by itself which comes first
    np.testing.assert_array_equal(model.predict(early), model.predict(frame)[:3])
    np.testing.assert_array_equal(model.predict(frame.assign(day=days)), model.predict(frame))

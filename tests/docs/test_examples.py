"""The examples do what they say, on small data; on the real data where it is beside the checkout."""

from __future__ import annotations

from functools import partialmethod
from pathlib import Path
from typing import Any

import made_up
import many_models
import pandas as pd
import pytest
import ray_train
import taxi_by_zone
from click.testing import CliRunner
from forest_sweep import sweep
from paths import ROOT, shared_data

from tuning import RunResult, TuneRunner
from tuning.cli.program import main

EXAMPLES = ROOT / "examples"


@pytest.fixture
def housing(tmp_path: Path) -> Path:
    """California housing, every twentieth row; where it is not beside the checkout, a made-up one of its columns."""
    real, path = shared_data(), tmp_path / "housing.csv"
    table = made_up.housing(1000) if real is None else pd.read_csv(real / "california-housing" / "housing.csv")[::20]
    table.to_csv(path, index=False)
    return path


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What examples define runs here: workers find no other models, and take seconds to start."""
    monkeypatch.setattr(TuneRunner, "run", partialmethod(TuneRunner.run, in_process=True))


def test_the_best_of_three_estimators_for_every_zone_and_month(in_process: None, tmp_path: Path) -> None:
    for month in (1, 2):
        made_up.trips(month).to_parquet(tmp_path / f"2019-{month}.parquet", index=False)
    result = taxi_by_zone.search(str(tmp_path / "*.parquet"), str(tmp_path / "run"), slots=1, mlflow=False)
    board = result.leaderboard().set_index("customer")
    assert set(board.index) == {f"2019-{month}/{zone}" for month in (1, 2) for zone in (1, 67, 133, 200)}
    assert list(board[board["status"] != "ok"].index) == ["2019-1/200", "2019-2/200"]
    assert (board[board["status"] == "ok"]["trials"] == 3).all()
    assert set(board[board["status"] == "ok"]["model"]) <= {
        "LinearRegression",
        "DecisionTreeRegressor",
        "DecisionTreeRegressor(splitter='random')",
    }


def test_a_sweep_has_an_error_for_every_forest(tmp_path: Path) -> None:
    made_up.housing(80).to_csv(tmp_path / "housing.csv", index=False)
    one, _ = sweep(str(tmp_path / "housing.csv"), str(tmp_path / "one"), 1, parallel=False, most=16)
    assert one["config.n_estimators"].tolist() == [8, 12, 16]
    assert (one["score"] > 0).all()


@pytest.mark.slow
def test_the_forests_of_both_sweeps_are_the_same(ray_cluster: None, tmp_path: Path) -> None:
    made_up.housing(80).to_csv(tmp_path / "housing.csv", index=False)

    one, _ = sweep(str(tmp_path / "housing.csv"), str(tmp_path / "one"), 1, parallel=False, most=32)
    both, _ = sweep(str(tmp_path / "housing.csv"), str(tmp_path / "both"), 2, parallel=True, most=32)

    assert one["config.n_estimators"].tolist() == [8, 12, 16, 20, 24, 28, 32]
    pd.testing.assert_frame_equal(one, both)


def example(name: str, housing: Path, **changes: Any) -> TuneRunner:
    """A definition of the examples, of one trial on small data."""
    return TuneRunner.from_yaml(EXAMPLES / name, data=str(housing), slots=2, trials=1, mlflow=False, **changes)


@pytest.mark.slow
def test_ray_train_trains_a_table_that_ray_data_reads(group_cluster: None, housing: Path, tmp_path: Path) -> None:
    (record,) = example("ray_train.yaml", housing).run(tmp_path / "run", progress=False).trial_records
    assert record.state == "finished", (record.reason, record.error)
    assert [step.step for step in record.steps] == list(range(1, ray_train.ROUNDS + 1))
    assert record.steps[-1].score < record.steps[0].score


@pytest.mark.slow
def test_xgboost_ray_trains_a_table_about_as_one_process_does(
    group_cluster: None, housing: Path, tmp_path: Path
) -> None:
    runner = example("xgboost_ray.yaml", housing)
    found = runner.run(tmp_path / "run", progress=False)
    alone = example("xgboost_ray.yaml", housing, models=["xgboost"]).run(tmp_path / "alone", in_process=True)
    (record,), (board,) = found.trial_records, found.board()
    assert record.state == "finished", (record.reason, record.error)
    assert board["model"] == "xgboost_ray"
    assert board["test_score"] == pytest.approx(alone.board().ends(1)[0]["test_score"], rel=0.1)
    assert len(found.model().predict(pd.read_csv(housing)[:3])) == 3


def test_a_model_for_every_pair_of_keys(in_process: None, tmp_path: Path) -> None:
    many_models.write_table(tmp_path / "table.parquet", customers=9, rows=20)
    board = many_models.search(tmp_path / "table.parquet", str(tmp_path / "run"), slots=1).leaderboard()
    assert list(board["customer"]) == [f"{shop}/{product}" for shop in range(3) for product in range(3)]
    assert (board["status"] == "ok").all()
    assert (board["trials"] == 2).all()


def test_real_data_is_found_beside_a_checkout_and_one_level_higher(tmp_path: Path) -> None:
    checkout = tmp_path / "work" / "clone"
    checkout.mkdir(parents=True)
    assert shared_data(checkout) is None
    for place in (tmp_path, tmp_path / "work"):  # the nearer one counts
        (place / "shared" / "data").mkdir(parents=True)
        assert shared_data(checkout) == place / "shared" / "data"


def test_house_prices_by_kind_of_place(shared_data: Path, tmp_path: Path) -> None:
    housing = shared_data / "california-housing" / "housing.csv"
    quick = ("search_space=ridge", "trials=2", "mlflow=false")
    arguments = ["run", EXAMPLES / "california.yaml", "--data", housing, "--run-dir", tmp_path / "run", "--in-process"]
    answer = CliRunner().invoke(main, [*map(str, arguments), "--progress=none", *(f"--set={each}" for each in quick)])
    assert answer.exit_code == 0, answer.output
    board = RunResult(str(tmp_path / "run")).leaderboard().set_index("customer")
    assert sorted(board.index) == ["<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN"]
    rows = pd.read_csv(housing)
    big = rows.groupby("ocean_proximity")["median_house_value"].std()
    for place in ("<1H OCEAN", "INLAND", "NEAR BAY", "NEAR OCEAN"):
        assert -board.loc[place, "test_score"] < 0.8 * big[place], "better than saying the mean"

"""The examples do what they say, on small data; on the real data where it is beside the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import many_models
import numpy as np
import pandas as pd
import pytest
import ray_train
import taxi_by_zone
import yaml
from click.testing import CliRunner
from forest_sweep import TARGET, sweep
from paths import ROOT, shared_data
from ray.train import ScalingConfig

from tuning import RunResult, TuneRunner
from tuning.cli.program import main

pytestmark = pytest.mark.timeout(300)  # each starts workers, which takes a while on a busy machine
EXAMPLES = ROOT / "examples"


def trips(months: int = 1, zones: int = 4, rows: int = 12) -> list[pd.DataFrame]:
    """Trips with the TLC's column names; of the last zone there are 3 only."""
    rng = np.random.default_rng(0)
    tables = []
    for month in range(months):
        zone = np.repeat(np.arange(zones), [*[rows] * (zones - 1), 3])
        pickup = pd.Timestamp(2019, month + 1, 1) + pd.to_timedelta(rng.integers(0, 86400, len(zone)), unit="s")
        to = rng.integers(1, 200, len(zone))
        seconds = pd.to_timedelta(60 + 3 * to + rng.integers(0, 60, len(zone)), unit="s")
        columns = {"PULocationID": zone, "DOLocationID": to, "tpep_pickup_datetime": pickup}
        tables.append(pd.DataFrame({**columns, "tpep_dropoff_datetime": pickup + seconds}))
    return tables


def test_the_best_of_three_estimators_for_every_zone_and_month(ray_cluster: None, tmp_path: Path) -> None:
    for month, table in enumerate(trips(2), start=1):
        table.to_parquet(tmp_path / f"2019-{month}.parquet", index=False)
    result = taxi_by_zone.search(str(tmp_path / "*.parquet"), str(tmp_path / "run"), mlflow=False)
    board = result.leaderboard().set_index("customer")
    assert sorted(board.index) == [f"2019-{month}/{zone}" for month in (1, 2) for zone in range(4)]
    assert list(board[board["status"] != "ok"].index) == ["2019-1/3", "2019-2/3"]
    assert (board[board["status"] == "ok"]["trials"] == 3).all()
    assert set(board[board["status"] == "ok"]["model"]) <= {
        "LinearRegression",
        "DecisionTreeRegressor",
        "DecisionTreeRegressor(splitter='random')",
    }


def test_the_forests_of_both_sweeps_are_the_same(ray_cluster: None, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"rooms": rng.normal(size=80), "age": rng.normal(size=80), "ocean_proximity": "INLAND"})
    table[TARGET] = 1000 * table["rooms"] + rng.normal(size=80)
    table.to_csv(tmp_path / "housing.csv", index=False)

    one, _ = sweep(str(tmp_path / "housing.csv"), str(tmp_path / "one"), 1, parallel=False, most=32)
    both, _ = sweep(str(tmp_path / "housing.csv"), str(tmp_path / "both"), 2, parallel=True, most=32)

    assert one["config.n_estimators"].tolist() == [8, 12, 16, 20, 24, 28, 32]
    pd.testing.assert_frame_equal(one, both)


def test_several_processes_train_a_table_that_ray_data_reads(ray_cluster: None, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"rooms": rng.normal(size=200), "age": rng.normal(size=200), "ocean_proximity": "INLAND"})
    table[ray_train.TARGET] = 10 * table["rooms"] + rng.normal(size=200)
    table.to_csv(tmp_path / "housing.csv", index=False)
    small = ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5})

    def small_trainer(config: dict[str, Any], files: list[str], scaling_config: ScalingConfig = small) -> Any:
        return ray_train.trainer(config, files, scaling_config)

    given = yaml.safe_load((EXAMPLES / "ray_train.yaml").read_text())
    changed = {"data": str(tmp_path / "housing.csv"), "objective": small_trainer, "trials": 1, "slots": 2}
    result = TuneRunner(**{**given, **changed, "mlflow": False}).run(tmp_path / "run", progress=False)
    (record,) = result.trial_records
    assert record.state == "finished", (record.reason, record.error)
    assert [step.step for step in record.steps] == list(range(1, ray_train.ROUNDS + 1))
    assert record.steps[-1].score < record.steps[0].score


def test_a_model_for_every_pair_of_keys(ray_cluster: None, tmp_path: Path) -> None:
    many_models.write_table(tmp_path / "table.parquet", customers=9, rows=20)
    board = many_models.search(tmp_path / "table.parquet", str(tmp_path / "run"), slots=2).leaderboard()
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

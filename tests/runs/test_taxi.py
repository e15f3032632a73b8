"""One keyed table with very uneven keys: every zone of the taxi sample has its row, and a model where it can."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from paths import ROOT

from tuning.cli.program import main
from tuning.runs.results import RunResult


@pytest.fixture
def trips(shared_data: Path) -> Path:
    return shared_data / "nyc-taxi" / "trips.csv"


def run(trips: Path, folder: Path, *options: str) -> tuple[int, pd.DataFrame, str]:
    answer = CliRunner().invoke(
        main,
        [
            "run",
            str(ROOT / "examples" / "nyc_taxi.yaml"),
            *("--data", str(trips), "--run-dir", str(folder), "--in-process", "--progress=none"),
            *("--set", "search_space=ridge", "--set", "algorithm=random", "--set", "trials=1"),
            *("--set", "mlflow=false", "--set", "report=false", "--set", "save_models=false"),
            *options,
        ],
    )
    return answer.exit_code, RunResult(str(folder)).leaderboard(), answer.stderr


def test_every_zone_is_on_the_leaderboard_once_and_small_zones_have_models(trips: Path, tmp_path: Path) -> None:
    code, board, _ = run(trips, tmp_path / "run")
    rows = pd.read_csv(trips)["PULocationID"].value_counts()
    assert code == 3
    assert sorted(board["customer"]) == sorted(map(str, rows.index))
    without = board[board["status"] != "ok"].set_index("customer")["reason"]
    assert set(without.index) == {str(zone) for zone, count in rows.items() if count < 4}
    assert len(without) == 76
    assert without.str.contains("fewer than min_rows: 4").all()
    small = {str(zone) for zone, count in rows.items() if 4 <= count <= 10}
    assert len(small) > 20
    scored = board.set_index("customer").loc[sorted(small)]
    assert scored["cv_score"].notna().all()
    assert scored["test_score"].notna().all()


def test_single_zones_can_be_chosen(trips: Path, tmp_path: Path) -> None:
    code, board, _ = run(trips, tmp_path / "run", "--customer", "237", "--customer", "161")
    assert code == 0
    assert list(board["customer"]) == ["161", "237"]

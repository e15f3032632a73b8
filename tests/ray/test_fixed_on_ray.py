"""Known configurations on Ray: a packed worker fits them as the search had fitted them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import definition, write_customers

from tuning import TuneRunner

ENDS_IN_A_FIT = """
import os
from sklearn.linear_model import LinearRegression

class Ends(LinearRegression):
    def fit(self, X, y, **given):
        if len(X) > 50:
            os._exit(3)
        return super().fit(X, y, **given)"""


def frame(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    found = pd.DataFrame(rng.normal(size=(rows, 2)), columns=["a", "b"])
    return found.assign(y=np.where(found["a"] + rng.normal(size=rows) > 0, "yes", "no"))


@pytest.mark.slow
def test_a_packed_worker_fits_one_and_searches_for_the_other(ray_cluster: None, tmp_path: Path) -> None:
    data = {"one": frame(), "two": frame(200)}
    given: dict[str, Any] = {"data": data, "target": "y", "trials": 2, "mlflow": False, "slots": 1}
    given |= {"metric": "neg_log_loss", "placement": "packed", "report": False, "models": ["logistic"]}
    first = TuneRunner(**given).run(tmp_path / "first", progress=False, in_process=True)
    known = {"one": first.fixed_configurations()["one"]}
    again = TuneRunner(**given, fixed=known).run(tmp_path / "again", progress=False)
    assert {record.customer for record in again.trial_records} == {"two"}
    assert [record.trials for record in again.study_records] == [0, 2]
    assert np.array_equal(again.model("one").predict_proba(frame()), first.model("one").predict_proba(frame()))


@pytest.mark.slow
def test_a_known_configuration_that_ends_its_worker_costs_its_customer(ray_cluster: None, tmp_path: Path) -> None:
    """Rows have come with which its fit ends the process: it is put aside, as a trial that does so is."""
    (tmp_path / "mine.py").write_text(ENDS_IN_A_FIT)
    write_customers(tmp_path / "data", 2)
    given = definition(tmp_path / "data", allow_code=True, trials=1)
    given |= {"models": {"mine": f"{tmp_path / 'mine.py'}:Ends"}, "search_space": None}
    first = TuneRunner(**given).run(str(tmp_path / "first"), progress=False, in_process=True)
    one, other = sorted(first)
    path = tmp_path / "data" / f"{one}.csv"
    rows = pd.read_csv(path)
    pd.concat([rows, rows / 2]).to_csv(path, index=False)
    runner = TuneRunner(**given, fixed=first.fixed_configurations())
    result = runner.run(str(tmp_path / "again"), progress=False)
    board = result.leaderboard().set_index("customer")
    assert board["status"].to_dict() == {one: "quarantined", other: "ok"}
    assert "ended its worker 2 times" in board.loc[one, "reason"]
    assert result.trial_records == []

"""Known configurations on Ray: a packed worker fits them as the search had fitted them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tuning import TuneRunner


def frame(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    found = pd.DataFrame(rng.normal(size=(rows, 2)), columns=["a", "b"])
    return found.assign(y=np.where(found["a"] + rng.normal(size=rows) > 0, "yes", "no"))


@pytest.mark.slow
@pytest.mark.timeout(240)
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

"""The pool of a run as a job of Tune's: one of the cluster's workers trains it, before all others work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from builders import definition, write_customers

from tuning import RunResult, TuneRunner
from tuning.records.schema import FINISHED
from tuning.study.record import worker_name

pytestmark = pytest.mark.ray

DIES_ONCE = """
import os
from pathlib import Path

def error(y, said):
    if len(y) > 20 and Path({armed!r}).exists():  # of both customers' rows
        os.remove({armed!r})
        os._exit(1)
    return float(((y - said) ** 2).mean())
"""


def test_the_tuner_of_a_run_trains_its_pool_and_again_where_the_worker_dies(ray_cluster: None, tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 2)
    armed, code = tmp_path / "armed", tmp_path / "code.py"
    code.write_text(DIES_ONCE.format(armed=str(armed)))
    keys = {"pool": "on", "metric": f"{code}:error", "mode": "min", "trials": 2, "slots": 2, "search_space": "ridge"}
    runner = TuneRunner(**definition(tmp_path / "data", **keys))
    tuner = runner.tuner(tmp_path / "run")
    armed.touch()
    tuner.fit()
    assert not armed.exists()
    result = RunResult(tmp_path / "run")
    pool = result.trials().iloc[0]
    assert (pool["state"], pool["attempt"]) == (FINISHED, 2)
    assert pool["worker"] != worker_name()
    assert result.unfinished == 0
    alone = runner.run(tmp_path / "alone", progress=False, in_process=True)
    assert pool["fold_scores"] == alone.trials().iloc[0]["fold_scores"]
    boosters = [sorted(os.listdir(tmp_path / name / "pool")) for name in ("run", "alone")]
    assert boosters[0] == boosters[1]

"""A limit of trials that a run's environment has."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import definition, write_customers

from tuning.definition.definition import define
from tuning.errors import PlanError
from tuning.planning.capacity import MOST_TRIALS
from tuning.planning.plan import make_plan


def test_a_run_with_more_trials_than_its_environment_allows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_customers(tmp_path / "data", 3)
    made = define(definition(tmp_path / "data", trials=4))
    monkeypatch.setenv(MOST_TRIALS, "12")
    assert make_plan(made, run_dir=tmp_path / "run").n_trials == 12
    monkeypatch.setenv(MOST_TRIALS, "11")
    with pytest.raises(PlanError, match="the run has 12 trials in 3 studies, and 11 are allowed in one run"):
        make_plan(made, run_dir=tmp_path / "run")

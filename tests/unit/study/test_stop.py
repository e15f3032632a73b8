"""Stopping rules of a definition: what ends a study early, and that the record says why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from search_spaces import Float, SearchSpace
from tuning import TuneRunner
from tuning.definition.definition import define
from tuning.errors import DefinitionError
from tuning.notes import texts
from tuning.planning.plan import make_plan

FIELDS = {
    "objective": lambda config: (config["x"] - 1) ** 2,
    "search_space": SearchSpace([Float("x", -5, 5, default=1.0)]),
    "metric": "loss",
    "mode": "min",
    "trials": 30,
    "algorithm": "random",
    "mlflow": False,
}


def test_a_study_ends_when_its_target_is_reached(tmp_path: Path) -> None:
    result = TuneRunner(**FIELDS, stop={"target": 0.5}).run(str(tmp_path / "run"), progress=False, in_process=True)
    assert len(result.trial_records) == 1  # the default is the optimum
    assert texts(result.study_records[0].notes) == "target: trial 00000 reached 0 (target 0.5); 1 of 30 trials were run"


def test_a_study_ends_when_nothing_gets_better(tmp_path: Path) -> None:
    stop = {"study_plateau": {"trials": 5}}
    result = TuneRunner(**FIELDS, stop=stop).run(str(tmp_path / "run"), progress=False, in_process=True)
    assert 5 <= len(result.trial_records) < 12
    assert result.leaderboard()["status"][0] == "ok"
    assert "study_plateau: nothing better than 0 in the last 5 trials" in texts(result.study_records[0].notes)


def test_an_unknown_rule_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(DefinitionError, match="target"):
        define({**FIELDS, "stop": {"targt": 0.5}})


def test_rules_work_in_both_placements() -> None:
    assert make_plan(define({**FIELDS, "stop": {"target": 0.5}, "placement": "spread"})).placement == "spread"


def test_a_trial_of_an_objective_ends_on_its_plateau_with_its_last_step(tmp_path: Path) -> None:
    """Packed here; spread, the same step and reason come from `tuning.execution.spread.spread_study`."""

    def objective(config: dict[str, Any]) -> Iterator[float]:
        yield from (config["x"] + loss for loss in (3.0, 2.0, 1.0, 1.0, 1.5, 1.5, 0.0))

    fields = {**FIELDS, "objective": objective, "steps": 7, "scheduler": "fifo", "stop": {"trial_plateau": 2}}
    default, *others = TuneRunner(**fields).run(str(tmp_path / "run"), progress=False, in_process=True).trial_records
    assert len(default.steps) == 7
    assert others
    for record in others:
        assert (record.state, record.best_step) == ("finished", 5)
        assert str(record.reason) == f"trial_plateau: nothing better than {record.config['x'] + 1.0:.6g} since step 3"

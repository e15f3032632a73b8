"""`trials: auto`: a number for each customer, by the task and its rows, which a resume keeps or raises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from paths import ROOT

from tuning import TuneRunner
from tuning.definition import trial_numbers
from tuning.errors import RunError
from tuning.planning import trials_by_rows
from tuning.planning.plan import Plan

ROWS = {"few": 60, "many": 500, "some": 200}


@pytest.fixture(autouse=True)
def _numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials_by_rows, "FEWER", {"regression": ((100, 2), (400, 3))})


def table(**more: object) -> pd.DataFrame:
    who = np.repeat([*ROWS], [*ROWS.values()])
    values = np.random.default_rng(0).normal(size=(len(who), 2))
    return pd.DataFrame(values, columns=["x", "y"]).assign(who=who, **more)


def planned(**fields: Any) -> Plan:
    return TuneRunner(**{"data": table(), "by": "who", "target": "y", "mlflow": False, **fields}).plan()


def trials(plan: Plan) -> list[int]:
    return plan.studies.numbers("n_trials").tolist()


def note(plan: Plan) -> str:
    (found,) = [each for each in plan.notes if each.startswith("trials: auto")]
    return found


def test_a_customer_with_fewer_rows_has_fewer_trials() -> None:
    plan = planned()
    assert (plan.studies.texts("id").to_pylist(), trials(plan)) == ([*ROWS], [2, 20, 3])
    assert "trials      25 (2 to 20 per study)" in plan.describe()
    assert note(plan).startswith("trials: auto is 2 for 1 customer, 3 for 1 customer, 20 for 1 customer, by their rows")


def test_a_number_is_the_number_of_everybody() -> None:
    plan = planned(trials=20)
    assert trials(plan) == [20, 20, 20]
    assert not [each for each in plan.notes if each.startswith("trials: auto")]


def test_files_tell_their_rows_by_their_sizes_and_the_plan_says_so(tmp_path: Path) -> None:
    for name, rows in table().groupby("who"):
        rows.drop(columns="who").to_csv(tmp_path / f"{name}.csv", index=False)
    plan = planned(data=str(tmp_path / "*.csv"), by=())
    assert trials(plan) == [2, 20, 3]
    assert "a few of which were counted" in note(plan)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"portfolio": "none"}, "do not begin with the shipped portfolio"),
        ({"search_space": "ridge"}, "lacks some of the shipped portfolio"),
        ({"scheduler": "hyperband"}, "one race"),
        ({"ensemble": "none"}, "no ensembles"),
        ({"compare": {"algorithms": ["random", "optuna"]}}, "compared"),
        ({"data": table(y=["no", "yes"] * 380)}, "of classes"),
    ],
)
def test_where_fewer_trials_were_not_measured_they_are_twenty(fields: dict[str, Any], why: str) -> None:
    plan = planned(**fields)
    assert set(trials(plan)) == {20}
    assert why in note(plan)


def test_a_resume_keeps_the_numbers_or_raises_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials_by_rows, "FEWER", {"regression": ((100, 1), (10_000, 2))})
    monkeypatch.setattr(trial_numbers, "USUAL_TRIALS", 3)
    fields: dict[str, Any] = {"data": table()[:200], "by": "who", "target": "y", "mlflow": False, "report": False}
    run = str(tmp_path / "run")

    def counts(**more: Any) -> list[int]:
        result = TuneRunner(**fields, **more).run(run, in_process=True, progress=False, resume=True)
        return result.leaderboard().sort_values("customer")["trials"].tolist()

    first = counts()
    assert first == [1, 2]
    monkeypatch.setattr(trials_by_rows, "FEWER", {"regression": ((100, 2),)})  # another version's numbers
    assert counts() == first
    with pytest.raises(RunError, match=r"trials: auto \(at most 3\) there, 2 here; they can only become more"):
        counts(trials=2)
    assert counts(trials=3) == [3, 3]
    assert counts(trials=4) == [4, 4]


def test_the_page_has_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    steps = [(task, *step) for task, steps in trials_by_rows.FEWER.items() for step in steps]
    rows = [f"| {task} | fewer than {rows} | {count} |" for task, rows, count in steps]
    assert (
        "\n".join([*rows, f"| any | others | {trial_numbers.USUAL_TRIALS} |"]) in (ROOT / "docs/models.md").read_text()
    )

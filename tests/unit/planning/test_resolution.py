"""What a plan settles from a look at the target, and what it refuses before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from shown_output import codes_of, note_texts

from tuning.data import sampling
from tuning.definition.definition import define
from tuning.errors import DefinitionError, PlanError
from tuning.notes import PlanCode
from tuning.planning.plan import make_plan
from tuning.planning.run_plan import Plan

X = np.arange(60.0)


def plan_of(targets: dict[str, Any], **fields: Any) -> Plan:
    data = {name: pd.DataFrame({"x": X, "y": target}) for name, target in targets.items()}
    return make_plan(define({"data": data, "target": "y", **fields}))


def test_the_plan_says_what_was_guessed_from_what() -> None:
    plan = plan_of({"a": ["churned"] * 20 + ["stayed"] * 40, "b": ["churned", "stayed"] * 30})
    assert plan.spec.positive == "churned"
    assert "task        binary (positive class 'churned')" in plan.describe()
    assert plan.to_dict()["positive"] == "churned"
    (note,) = plan.notes
    assert (note.code, note.subject, note.values["positive"]) == (PlanCode.BINARY_GUESSED, "binary", "churned")
    assert str(note.values["positive_why"]) == "it is the rarer class, 41.7 % of 120 rows, beside 'stayed'"
    (note,) = plan_of({"a": ["churned"] * 20 + ["stayed"] * 40}, task="binary").notes
    assert note.code is PlanCode.POSITIVE_GUESSED


def test_the_positive_class_can_be_chosen() -> None:
    plan = plan_of({"a": ["churned"] * 20 + ["stayed"] * 40}, positive="stayed")
    assert plan.spec.positive == "stayed"
    assert codes_of(plan) == [PlanCode.TASK_GUESSED]
    assert plan_of({"a": [0, 1, None] * 20}, positive=0).spec.positive == 0
    assert plan_of({"a": ["True", "False"] * 30}, positive=True).spec.positive == "True"


@pytest.mark.parametrize(
    ("fields", "task"),
    [
        ({}, "regression"),
        *(({"metric": metric}, "regression") for metric in ("rmse", "neg_mean_absolute_error", "r2", "rmsle")),
        *(({"metric": metric}, "multiclass") for metric in ("accuracy", "f1_macro", "log_loss", "roc_auc_ovr")),
        *(({"models": names}, "multiclass") for names in ("logistic", ["extra_trees", "logistic"])),
        *(({"models": names}, "regression") for names in ("ridge", "extra_trees")),
        ({"search_space": "logistic"}, "multiclass"),
        ({"metric": "cost.py:cost"}, "multiclass"),
        ({"class_weight": "balanced"}, "multiclass"),
        ({"split": {"type": "stratified"}}, "multiclass"),
        ({"bounds": [0, None]}, "regression"),
    ],
)
def test_few_whole_numbers_are_counts_unless_the_definition_says_that_they_are_classes(
    fields: dict[str, Any], task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cost.py").write_text("def cost(y, proba):\n    return 1.0\ncost.needs_proba = True\n")
    plan = plan_of({"a": [0, 1, 2, 4, 7, 14] * 10}, **fields, **{"mode": "min"} if "cost" in str(fields) else {})
    assert plan.spec.task == task
    said = any("counts more often than classes; set `task` to choose" in note for note in note_texts(plan))
    assert said is (fields in ({}, {"models": "extra_trees"}))


@pytest.mark.parametrize("metric", ["rmse", "neg_mean_absolute_error", "r2"])
def test_a_metric_of_numbers_makes_no_numbers_of_text(metric: str) -> None:
    with pytest.raises((DefinitionError, PlanError), match="does not fit multiclass"):
        plan_of({"a": ["low", "middle", "high"] * 20}, metric=metric)


@pytest.mark.parametrize("kind", ["csv", "parquet", "files"])
def test_a_customer_with_too_many_rows_has_no_say_in_the_task(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it hide the others behind its own rows, of which there are more than a look takes in."""
    monkeypatch.setattr(sampling, "ROWS", 100)
    table = pd.concat(
        [pd.DataFrame({"shop": "big", "x": 1.0, "y": ["a", "b", "c"] * 60})]
        + [pd.DataFrame({"shop": name, "x": 1.0, "y": X / 7}) for name in ("s1", "s2")]
    ).astype({"y": str})
    if kind == "files":
        for name, rows in table.groupby("shop"):
            rows.to_csv(tmp_path / f"{name}.csv", index=False)
        data: dict[str, Any] = {"data": str(tmp_path / "*.csv")}
    else:
        data = {"data": str(tmp_path / f"t.{kind}"), "by": "shop"}
        table["y"] = table["y"] if kind == "csv" else table["y"].map(len)  # Parquet has one type for all
        table.to_csv(data["data"], index=False) if kind == "csv" else table.to_parquet(data["data"], row_group_size=70)
    plan = make_plan(define({**data, "target": "y", "limits": {"max_rows": 150}}))
    assert [note.values["customers"] for note in plan.notes if note.code is PlanCode.TASK_GUESSED] == [["s1", "s2"]]


@pytest.mark.parametrize(
    ("target", "fields", "message"),
    [
        (["churned", "stayed"] * 30, {"positive": "churnd"}, "positive: no class 'churnd' .* Did you mean 'churned'?"),
        (["churned", "stayed"] * 30, {"class_weight": {"gone": 2}}, "class_weight: no class 'gone' .*'churned', 'st"),
        (["a", "b", "c"] * 20, {"positive": "a"}, "positive: the task is multiclass, only a binary one has"),
        (X / 7, {"positive": 1}, "positive: the task is regression"),
        (X, {"positive": 1}, "positive: the task is multiclass"),
    ],
)
def test_classes_that_are_not_there_are_refused(target: object, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan_of({"a": target, "b": target}, **fields)


def test_what_only_some_lack_is_a_note_where_not_all_were_looked_at() -> None:
    targets = {f"c{number}": ["a", "b", "c"] * 20 for number in range(6)}
    plan = plan_of(targets, class_weight={"rare": 3})
    assert [note.subject for note in plan.notes if note.code is PlanCode.CLASS_MISSING] == ["class_weight"]


def test_a_target_that_one_customer_has_is_enough(tmp_path: Path) -> None:
    pd.DataFrame({"x": X, "other": X}).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame({"x": X, "price": X}).to_csv(tmp_path / "b.csv", index=False)
    (tmp_path / "c.csv").write_bytes(b"")
    made = define({"data": str(tmp_path / "*.csv"), "task": "regression", "target": "price"})
    assert len(make_plan(made).studies) == 3

"""`tuning validate` refuses the customers that a run would refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tuning.data import sampling
from tuning.definition.definition import define
from tuning.planning.plan import make_plan
from tuning.planning.validation import check_customers


def test_a_customer_with_too_many_rows_is_refused_before_its_table_is_divided() -> None:
    table = pd.DataFrame({"shop": ["small"] * 20 + ["large"] * 40, "x": np.arange(60.0), "y": np.arange(60.0)})
    made = define({"data": table, "by": "shop", "target": "y", "task": "regression", "limits": {"max_rows": 30}})
    plan = make_plan(made)
    assert check_customers(plan, [study.customer for study in plan.studies]) == {
        "large": "its table has 40 rows, more than limits.max_rows: 30; raise it, if the machines have the memory."
    }


def test_a_customer_is_not_refused_for_standing_far_down_in_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "ROWS", 50)
    rows = [pd.DataFrame({"shop": name, "x": np.arange(40.0), "y": np.arange(40.0)}) for name in "abc"]
    rows.append(pd.DataFrame({"shop": "few", "x": [1.0], "y": [1.0]}))
    pd.concat(rows).to_csv(tmp_path / "t.csv", index=False)
    plan = make_plan(define({"data": str(tmp_path / "t.csv"), "by": "shop", "target": "y", "task": "regression"}))
    customers = [study.customer for study in plan.studies]
    assert check_customers(plan, customers) == {"few": "1 row with a target, fewer than min_rows: 4."}

"""`tuning validate` refuses the customers that a run would refuse."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tuning.definition.definition import define
from tuning.planning.plan import make_plan
from tuning.planning.validation import check_customers


def test_a_customer_with_too_many_rows_is_refused_before_its_table_is_divided() -> None:
    table = pd.DataFrame({"shop": ["small"] * 20 + ["large"] * 40, "x": np.arange(60.0), "y": np.arange(60.0)})
    made = define({"data": table, "by": "shop", "target": "y", "task": "regression", "limits": {"max_rows": 30}})
    plan = make_plan(made)
    assert check_customers(plan, [study.customer for study in plan.studies]) == {
        "large": "40 rows, more than limits.max_rows: 30."
    }

"""One customer's rows made ready for a study."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tuning.definition.definition import define
from tuning.evaluation.study_data import StudyData, study_data
from tuning.preprocessing.classes import Label


def prepare_data(
    frame: pd.DataFrame,
    *,
    target: str,
    task: str,
    seed: int,
    own: Any = None,
    run_positive: Label | None = None,
    **fields: Any,
) -> StudyData:
    """As a run does it. run_positive: its positive class. fields: of the definition."""
    return study_data(frame, define({"data": "x", "target": target, **fields}), task, seed, own, run_positive)

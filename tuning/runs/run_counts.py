"""A run in figures: what `RunResult.summary` counts, and `tuning run --output json` prints."""

from __future__ import annotations

from typing import TypedDict


class RunCounts(TypedDict):
    """Customers are counted once, whatever the number of their studies.

    compared_with_baseline: winners other than the baseline, on rows that the search never saw. model_bytes: of the
    winners' models in all. constants: models that are one. too_good: models that are perfect on every fold.
    """

    run: str
    run_dir: str
    customers: int
    succeeded: int
    without_model: int
    compared_with_baseline: int
    worse_than_baseline: int
    ensembles: int
    model_bytes: int
    constants: int
    too_good: int
    with_notes: int
    trials: int
    wall_seconds: float
    fit_seconds: float

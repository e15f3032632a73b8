"""The contenders, each in a fresh process of its own: `python -m benchmarks.contenders NAME SCENARIO.json OUT.json`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.contenders.outcome import Outcome
from benchmarks.workload import BINS, OUR_BINS, Scenario


@dataclass(frozen=True)
class Contender:
    """title: for tables. share: of the customers that it is given (the slow ones get fewer, scaled per trial).

    searches: whether it is in the table where each searches by itself. tiers: those that it is measured in. bins:
    XGBoost's `max_bin` where all have the same configurations.
    """

    name: str
    title: str
    run: Callable[[Scenario], Outcome]
    share: float = 1.0
    searches: bool = True
    tiers: str = "SML"
    bins: int = BINS


def contenders() -> dict[str, Contender]:
    """All of them, in the order of tables."""
    # Late: what they import is part of a contender's start.
    from benchmarks.contenders import batches, ours, pools, tuners

    return {
        contender.name: contender
        for contender in (
            Contender("ours", "ours, everything on", ours.everything, tiers="SMLT"),
            Contender("ours_without_mlflow", "ours without MLflow", ours.without_mlflow, searches=False, tiers="SMLT"),
            Contender("ours_bare", "ours, everything optional off", ours.bare, searches=False),
            Contender("ours_64_bins", "ours, 64 bins", ours.everything, searches=False, tiers="ML", bins=OUR_BINS),
            Contender("tuner_per_customer", "(a) one Tuner per customer", tuners.per_customer, share=0.01),
            Contender("grid_tuner", "(b) one Tuner, grid over customers", tuners.grid, share=0.05),
            Contender("ray_tasks", "(c) Ray tasks, one per customer", pools.ray_tasks),
            Contender(
                "ray_tasks_64_bins", "(c) with 64 bins", pools.ray_tasks, searches=False, tiers="ML", bins=OUR_BINS
            ),
            Contender("optuna_joblib", "(d) Optuna + joblib", pools.optuna_joblib),
            Contender("sklearn", "(e) RandomizedSearchCV, n_jobs", pools.sklearn_search),
            Contender("limit", "limit: the same fits, a bare loop per core", pools.bare_loops, searches=False),
            Contender("ray_batches", "Ray tasks, 100 customers each", batches.ray_tasks, share=0.15, tiers="T"),
            Contender("ray_data", "Ray Data, map_groups", batches.ray_data, share=0.1, tiers="T"),
            Contender("joblib", "joblib, 100 customers each", batches.joblib_pool, share=0.15, tiers="T"),
            Contender("plain_loop", "a loop on one core", batches.plain_loop, share=0.1, tiers="T"),
        )
    }

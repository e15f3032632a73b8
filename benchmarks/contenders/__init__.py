"""The contenders, each in a fresh process of its own: `python -m benchmarks.contenders NAME SCENARIO.json OUT.json`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.contenders.outcome import Outcome
from benchmarks.workload import Scenario


@dataclass(frozen=True)
class Contender:
    """title: for tables. share: of the customers that it is given (the slow ones get fewer, scaled per trial)."""

    name: str
    title: str
    run: Callable[[Scenario], Outcome]
    share: float = 1.0
    searches: bool = True


def contenders() -> dict[str, Contender]:
    """All of them, in the order of tables."""
    from benchmarks.contenders import ours, pools, tuners  # late: what they import is part of a contender's start

    return {
        contender.name: contender
        for contender in (
            Contender("ours", "ours, everything on", ours.everything),
            Contender("ours_without_mlflow", "ours without MLflow", ours.without_mlflow),
            Contender("ours_bare", "ours, everything optional off", ours.bare),
            Contender("tuner_per_customer", "(a) one Tuner per customer", tuners.per_customer, share=0.01),
            Contender("grid_tuner", "(b) one Tuner, grid over customers", tuners.grid, share=0.05),
            Contender("ray_tasks", "(c) Ray tasks, one per customer", pools.ray_tasks),
            Contender("optuna_joblib", "(d) Optuna + joblib", pools.optuna_joblib),
            Contender("sklearn", "(e) RandomizedSearchCV, n_jobs", pools.sklearn_search),
            Contender("limit", "limit: the same fits, a bare loop per core", pools.bare_loops, searches=False),
        )
    }

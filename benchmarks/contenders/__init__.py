"""The contenders, each in a fresh process of its own: `python -m benchmarks.contenders NAME SCENARIO.json OUT.json`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.workload import Scenario


@dataclass
class Outcome:
    """What a contender did, in seconds since the epoch.

    began: before anything was started or imported. returned: with the results in hand. events: (when, how many) of
    every trial or group of trials that ended. warm: when every worker had ended its first piece of work: a customer
    with everything that belongs to it, or the smallest piece that the contender has. winners: customer → (validation
    score, hold-out score).
    """

    began: float
    returned: float
    events: list[tuple[float, int]]
    warm: float
    winners: dict[str, tuple[float, float]]
    details: dict[str, Any] = field(default_factory=dict)


def all_warm(pieces: Iterable[tuple[float, str]]) -> float:
    """When the last worker ended its first piece of work, from (end, worker) of all pieces."""
    first: dict[str, float] = {}
    for when, worker in pieces:
        first[worker] = min(when, first.get(worker, when))
    return max(first.values())


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
    from benchmarks.contenders import ours, pools, tuners

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

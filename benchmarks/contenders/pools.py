"""The alternatives without Tune: bare Ray tasks, joblib, scikit-learn's own search, and the limit."""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
from collections.abc import Iterable
from typing import Any

from benchmarks import plain
from benchmarks.contenders.outcome import Outcome, all_warm
from benchmarks.workload import FIXED, FOLDS, Scenario, arguments, best

Points = list[dict[str, Any]]
# (customer, ends of trials, end of everything, worker, (score, hold-out score))
Worked = tuple[str, list[tuple[float, int]], float, str, tuple[float, float]]


def ray_tasks(scenario: Scenario) -> Outcome:
    """(c): nothing recorded, nothing retried. With the fixed list there is no sampler inside either."""
    import ray

    ray.init(num_cpus=scenario.cores, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    work = list_customer if scenario.search == FIXED else search_customer
    task = ray.remote(num_cpus=1)(work)
    shared = ray.put(scenario)
    return _outcome(ray.get([task.remote(shared, *item) for item in scenario.configurations().items()]))


def optuna_joblib(scenario: Scenario) -> Outcome:
    """(d): customers side by side in joblib's processes, an Optuna study for each."""
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=scenario.cores)
    return _outcome(pool(delayed(search_customer)(scenario, *item) for item in scenario.configurations().items()))


def sklearn_search(scenario: Scenario) -> Outcome:
    """(e): customers one after another, scikit-learn's search over the cores for each."""
    from sklearn.base import clone

    worked = []
    for customer, points in scenario.configurations().items():
        rows = plain.load(scenario, customer)
        search = _sklearn_search(scenario, customer, points).fit(rows.X, rows.y)
        winner = (float(search.best_score_), float(search.score(rows.X_test, rows.y_test)))
        clone(search.best_estimator_).fit(rows.X_all, rows.y_all)
        worked.append((customer, [(time.time(), len(points))], time.time(), "driver", winner))
    return _outcome(worked)


def bare_loops(scenario: Scenario) -> Outcome:
    """The limit: one process per core goes through its share of the customers, nothing around it."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(scenario.cores) as pool:
        items = [(scenario, customer, points) for customer, points in scenario.configurations().items()]
        shares = [items[core :: scenario.cores] for core in range(scenario.cores)]
        return _outcome([worked for share in pool.map(_share, shares, chunksize=1) for worked in share])


def list_customer(scenario: Scenario, customer: str, points: Points) -> Worked:
    """One customer from its file to its winner, one configuration of the list after another."""
    rows = plain.load(scenario, customer)
    scores, events = [], []
    for point in points:
        scores.append(plain.trial(scenario, rows, point))
        events.append((time.time(), 1))
    position = best(scores)
    winner = (scores[position], plain.conclude(scenario, rows, points[position])[0])
    return customer, events, time.time(), str(os.getpid()), winner


def search_customer(scenario: Scenario, customer: str, points: Points) -> Worked:
    """One customer from its file to its winner by an Optuna study, which is given the list or searches itself."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    rows = plain.load(scenario, customer)
    events: list[tuple[float, int]] = []
    varied = [parameter for parameter in scenario.space.parameters if hasattr(parameter, "low")]
    constants = {name: value for name, value in points[0].items() if name not in {p.name for p in varied}}
    if scenario.search == FIXED:
        study = optuna.create_study(direction="maximize", pruner=optuna.pruners.NopPruner())
        for point in points:
            study.enqueue_trial({parameter.name: point[parameter.name] for parameter in varied})
    else:
        pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)
        study = optuna.create_study(direction="maximize", pruner=pruner)

    def objective(trial: Any) -> float:
        point = constants | {p.name: trial.suggest_float(p.name, p.low, p.high, log=True) for p in varied}
        if scenario.search == FIXED:
            return plain.trial(scenario, rows, point)
        score = float("nan")
        for number, score in enumerate(plain.steps(scenario, rows, point), start=1):
            trial.report(score, number)
            if number < FOLDS and trial.should_prune():
                raise optuna.TrialPruned
        return score

    def note(*_: object) -> None:
        events.append((time.time(), 1))

    study.optimize(objective, n_trials=len(points), callbacks=[note])
    winner = (study.best_value, plain.conclude(scenario, rows, constants | study.best_params)[0])
    return customer, events, time.time(), str(os.getpid()), winner


def _sklearn_search(scenario: Scenario, customer: str, points: Points) -> Any:
    from sklearn.model_selection import RandomizedSearchCV

    prefix = "ridge__" if scenario.shape.rounds is None else ""
    model = plain.estimator(scenario, {})
    common = {"scoring": scenario.shape.metric, "cv": plain.splitter(scenario, customer), "n_jobs": scenario.cores}
    if scenario.search == FIXED:
        # Dictionaries of lists are drawn from without replacement: as many draws as points are the whole list.
        space = [{prefix + name: [value] for name, value in arguments(point).items()} for point in points]
        return RandomizedSearchCV(model, space, n_iter=len(points), random_state=0, **common)
    import sklearn.experimental.enable_halving_search_cv  # noqa: F401  # allows the import of HalvingRandomSearchCV
    from scipy.stats import loguniform
    from sklearn.model_selection import HalvingRandomSearchCV

    distributions = {
        prefix + parameter.name: loguniform(parameter.low, parameter.high)
        if hasattr(parameter, "low")
        else [parameter.default]
        for parameter in scenario.space.parameters
        if parameter.name != "model"
    }
    return HalvingRandomSearchCV(model, distributions, n_candidates=len(points), random_state=0, **common)


def _share(items: Iterable[tuple[Scenario, str, Points]]) -> list[Worked]:
    return [list_customer(*item) for item in items]


def _outcome(worked: Iterable[Worked]) -> Outcome:
    returned = time.time()
    worked = list(worked)
    events = sorted(event for _, found, *_ in worked for event in found)
    warm = all_warm((when, worker) for *_, when, worker, _ in worked)
    return Outcome(0.0, returned, events, warm, {customer: winner for customer, *_, winner in worked})

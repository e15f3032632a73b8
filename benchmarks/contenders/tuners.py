"""Ray Tune as its documentation shows it: one Tuner per customer, or one Tuner over customers and configurations."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable
from typing import Any

from benchmarks import plain
from benchmarks.contenders.outcome import Outcome, all_warm
from benchmarks.workload import FIXED, FOLDS, Scenario, best


def per_customer(scenario: Scenario) -> Outcome:
    """(a): Tune's defaults, its output switched off."""
    _start_ray(scenario)
    from ray import tune

    events: list[tuple[float, int]] = []
    winners = {}
    for customer, configurations in scenario.configurations().items():

        def trial(config: dict[str, Any], customer: str = customer) -> None:
            for score in plain.steps(scenario, plain.load(scenario, customer), config["point"]):
                tune.report({"score": score})

        options: dict[str, Any] = {}
        if scenario.search != FIXED:
            from ray.tune.search.optuna import OptunaSearch

            options = {"search_alg": OptunaSearch(), "scheduler": _asha(), "num_samples": scenario.trials}
        tuner = tune.Tuner(
            tune.with_resources(trial, {"cpu": 1}),
            param_space={"point": _points(scenario, configurations)},
            tune_config=tune.TuneConfig(metric="score", mode="max", **options),
            run_config=tune.RunConfig(name=customer, storage_path=_folder(scenario, "a"), verbose=0),
        )
        results = list(tuner.fit())
        winners[customer] = _winner(scenario, customer, results)
        events.append((time.time(), len(results)))
    return Outcome(0.0, time.time(), events, events[0][0], winners)


def grid(scenario: Scenario) -> Outcome:
    """(b): at its best, actors reused and Tune's loggers off. There is one scheduler, for all customers together."""
    os.environ |= {
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
        "TUNE_MAX_PENDING_TRIALS_PG": str(2 * scenario.cores),
        "TUNE_GLOBAL_CHECKPOINT_S": "100",
    }
    _start_ray(scenario)
    from ray import tune

    def trial(config: dict[str, Any]) -> None:
        customer, point = config.get("pair") or (config["customer"], config["point"])
        for score in plain.steps(scenario, plain.load(scenario, customer), point):
            tune.report({"score": score, "customer": customer, "ended": time.time(), "worker": str(os.getpid())})

    options: dict[str, Any] = {}
    if scenario.search == FIXED:
        pairs = [(name, point) for name, points in scenario.configurations().items() for point in points]
        space: dict[str, Any] = {"pair": tune.grid_search(pairs)}
    else:
        space = {"customer": tune.grid_search(list(scenario.customers)), "point": _points(scenario, [])}
        options = {"num_samples": scenario.trials, "scheduler": _asha()}
    tuner = tune.Tuner(
        tune.with_resources(trial, {"cpu": 1}),
        param_space=space,
        tune_config=tune.TuneConfig(
            metric="score", mode="max", reuse_actors=True, max_concurrent_trials=scenario.cores, **options
        ),
        run_config=tune.RunConfig(name="grid", storage_path=_folder(scenario, "b"), verbose=0),
    )
    results = list(tuner.fit())
    by_customer: dict[str, list[Any]] = {}
    for result in results:
        by_customer.setdefault(result.metrics["customer"], []).append(result)
    # One ASHA over all customers stops every trial of a customer whose scores are low: such a one has no winner.
    whole = {customer: group for customer, group in by_customer.items() if any(map(_full, group))}
    winners = {customer: _winner(scenario, customer, group) for customer, group in whole.items()}
    events = sorted((result.metrics["ended"], 1) for result in results)
    warm = all_warm((result.metrics["ended"], result.metrics["worker"]) for result in results)
    details = {"without_model": len(by_customer) - len(whole)}
    return Outcome(0.0, time.time(), events, warm, winners, details)


def _start_ray(scenario: Scenario) -> None:
    import ray

    ray.init(num_cpus=scenario.cores, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)


def _folder(scenario: Scenario, name: str) -> str:
    return f"{scenario.folder}/tune-{name}-{os.getpid()}"


def _asha() -> Any:
    from ray.tune.schedulers import ASHAScheduler

    return ASHAScheduler(max_t=FOLDS, grace_period=1, reduction_factor=3)


def _points(scenario: Scenario, configurations: list[dict[str, Any]]) -> Any:
    from ray import tune

    if scenario.search == FIXED:
        return tune.grid_search(configurations)
    space = {}
    for parameter in scenario.space.parameters:
        low = getattr(parameter, "low", None)
        space[parameter.name] = parameter.default if low is None else tune.loguniform(low, parameter.high)
    return space


def _full(result: Any) -> bool:
    return bool(result.metrics.get("training_iteration") == FOLDS)


def _winner(scenario: Scenario, customer: str, results: Iterable[Any]) -> tuple[float, float]:
    """(score, hold-out score) of the best full-length trial, fitted again."""
    full = [result for result in results if _full(result)]
    found = full[best([result.metrics["score"] for result in full])]
    point = found.config["pair"][1] if "pair" in found.config else found.config["point"]
    return found.metrics["score"], plain.conclude(scenario, plain.load(scenario, customer), point)[0]

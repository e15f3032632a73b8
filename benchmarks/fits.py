"""Pure fit time: the fits of the trials and of the winner in a serial loop, one thread, warm, nothing around them.

`plain`: as anybody writes them (benchmarks.plain): scaling, fit, prediction and scorer on each fold.
`prepared`: the fits of scikit-learn (its checks off) and XGBoost on rows that are split, encoded and binned already,
prediction and score. Against it nobody gains by caching, so it is what our efficiency is measured with.
`own`: the same rows, fitted and predicted by our model families: the least that our own work consists of. It differs
for linear models only, whose families call less of scikit-learn.
`python -m benchmarks.fits SCENARIO.json OUT.json`
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.workload import FOLDS, ONE_THREAD, TARGET, TEST, Scenario, arguments, best, split_seed

if TYPE_CHECKING:
    from tuning.models.base import EncodedRows
    from tuning.preprocessing.task import Prediction, Task

Loop = Callable[[], int]
Fit = Callable[[dict[str, Any], "EncodedRows", "Task"], Any]
Predict = Callable[[Any, "EncodedRows", "Task"], "Prediction"]


def main(given: str, wanted: str) -> None:
    os.environ.update(ONE_THREAD)
    scenario = Scenario.from_json(Path(given).read_text())
    linear = scenario.shape.rounds is None
    loops = {"plain": plain_loop(scenario), "own": prepared_loop(scenario, *own(scenario))}
    if linear:
        loops["prepared"] = prepared_loop(scenario, ridge, own(scenario)[1])
    quickest: dict[str, float] = {}
    for _ in range(scenario.options.get("repeats", 3)):
        for name, loop in loops.items():
            before = time.thread_time()
            trials = loop()
            quickest[name] = min(quickest.get(name, float("inf")), (time.thread_time() - before) / trials)
    Path(wanted).write_text(json.dumps({"prepared": quickest["own"], **quickest}))


def own(scenario: Scenario) -> tuple[Fit, Predict]:
    """What our model family does; the one of XGBoost calls `xgboost.train`, with bins that are made once per fold."""
    from tuning.models.registry import family as find_family

    family = find_family("ridge" if scenario.shape.rounds is None else "xgboost")
    return lambda config, train, task: family.fit(config, train, task, 0), family.predict


def ridge(config: dict[str, Any], train: EncodedRows, _: Task) -> Any:
    import sklearn
    from sklearn.linear_model import Ridge

    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        return Ridge(**config).fit(train.X, train.y)


def plain_loop(scenario: Scenario) -> Loop:
    from benchmarks import plain

    lists = scenario.configurations()
    rows = {customer: plain.load(scenario, customer) for customer in scenario.customers}
    plain.trial(scenario, rows[scenario.customers[0]], lists[scenario.customers[0]][0])  # what is loaded late

    def loop() -> int:
        for customer, points in lists.items():
            scores = [plain.trial(scenario, rows[customer], point) for point in points]
            plain.conclude(scenario, rows[customer], points[best(scores)])
        return sum(map(len, lists.values()))

    return loop


def prepared_loop(scenario: Scenario, fit: Fit, predict: Predict) -> Loop:
    from benchmarks import plain
    from tuning.definition.definition import define
    from tuning.evaluation.metrics import Metric, resolve_metric
    from tuning.evaluation.study_data import study_data
    from tuning.models.registry import family as find_family
    from tuning.user_code import ignore_warnings

    tier, lists = scenario.shape, scenario.configurations()
    prepared = {}
    for customer, points in lists.items():
        frame, seed = plain.read(scenario, customer), split_seed(customer)
        made = define({"data": "x", "target": TARGET, "split": {"test": TEST, "folds": FOLDS}})
        data = study_data(frame, made, tier.task, seed)
        family = find_family(points[0]["model"])
        (_, search, unseen), (_, everything) = data.whole(family), data.everything(family)
        prepared[customer] = data.task, data.folds(family), (search, unseen), everything

    def work(customer: str, points: list[dict[str, Any]]) -> None:
        task, folds, whole, everything = prepared[customer]
        metric = Metric(resolve_metric(tier.metric, task.kind), task)

        def score(point: dict[str, Any], train: EncodedRows, valid: EncodedRows) -> float:
            return metric.score(valid.y, predict(fit(arguments(point), train, task), valid, task))

        scores = [sum(score(point, *fold) for fold in folds) for point in points]
        winner = points[best(scores)]
        score(winner, *whole)
        fit(arguments(winner), everything, task)

    def loop() -> int:
        with ignore_warnings():
            for customer, points in lists.items():
                work(customer, points)
        return sum(map(len, lists.values()))

    first = scenario.customers[0]
    work(first, lists[first][:1])  # what is loaded late
    return loop


if __name__ == "__main__":
    main(*sys.argv[1:])

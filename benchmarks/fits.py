"""Pure fit time: the trials' fits in a serial loop, one thread, warm, nothing around them.

`plain`: as anybody writes them (benchmarks.plain): scaling, fit, prediction and scorer on each fold.
`prepared`: the least that our own trials consist of: fit, prediction and score on folds that are split, encoded and
binned already. Against it we cannot gain by caching, so it is what our efficiency is measured with.
`python -m benchmarks.fits SCENARIO.json OUT.json`
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.workload import ONE_THREAD, Scenario, arguments


def main(given: str, wanted: str) -> None:
    os.environ.update(ONE_THREAD)
    scenario = Scenario.from_json(Path(given).read_text())
    loops = {"plain": plain_loop(scenario), "prepared": prepared_loop(scenario)}
    best: dict[str, float] = {}
    for _ in range(scenario.options.get("repeats", 3)):
        for name, loop in loops.items():
            before = time.thread_time()
            trials = loop()
            best[name] = min(best.get(name, float("inf")), (time.thread_time() - before) / trials)
    Path(wanted).write_text(json.dumps(best))


def plain_loop(scenario: Scenario) -> Callable[[], int]:
    from benchmarks import plain

    lists = scenario.configurations()
    rows = {customer: plain.load(scenario, customer) for customer in scenario.customers}

    def loop() -> int:
        for customer, points in lists.items():
            for point in points:
                plain.trial(scenario, rows[customer], point)
        return sum(map(len, lists.values()))

    loop()
    return loop


def prepared_loop(scenario: Scenario) -> Callable[[], int]:
    from benchmarks import plain
    from benchmarks.workload import FOLDS, TARGET, TEST
    from tuning.evaluation.metrics import Metric
    from tuning.evaluation.study_data import prepare_data
    from tuning.execution.study_run import ignore_warnings
    from tuning.models.registry import family as find_family

    tier, lists = scenario.shape, scenario.configurations()
    data = {
        customer: prepare_data(
            plain.read(scenario, customer), target=TARGET, task=tier.task, seed=0, test_size=TEST, folds=FOLDS
        )
        for customer in scenario.customers
    }

    def loop() -> int:
        with ignore_warnings():
            for customer, points in lists.items():
                rows = data[customer]
                metric = Metric(tier.metric, rows.task)
                for point in points:
                    family = find_family(point["model"])
                    for train, valid in rows.folds(family):
                        model = family.fit(arguments(point), train, rows.task, 0)
                        metric.score(valid.y, family.predict(model, valid, rows.task))
        return sum(map(len, lists.values()))

    loop()
    return loop


if __name__ == "__main__":
    main(*sys.argv[1:])

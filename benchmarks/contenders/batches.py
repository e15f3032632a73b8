"""The alternatives for tiny customers in one table: batches of customers, and a plain loop.

Each does for a customer what ours does: three trials on the same folds, the winner fitted again and scored on the
hold-out, fitted once more on all rows, and saved in skops' format. Nothing else is kept.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import plain
from benchmarks.contenders.outcome import Outcome, all_warm
from benchmarks.workload import KEY, Scenario, best

if TYPE_CHECKING:
    import pandas as pd

BATCH = 100  # customers
Points = list[dict[str, Any]]
Batch = list[tuple[str, Points]]
# customer, end, worker, score, hold-out score
Worked = tuple[str, float, str, float, float]


def ray_tasks(scenario: Scenario) -> Outcome:
    """A task per batch, which gets its rows."""
    import ray

    ray.init(num_cpus=scenario.cores, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    work, shared = ray.remote(num_cpus=1)(work_batch), ray.put(_only(scenario))
    return _outcome(scenario, ray.get([work.remote(shared, *batch) for batch in _batches(scenario)]))


def ray_data(scenario: Scenario) -> Outcome:
    """Ray Data sorts the table by customer and gives each one's rows to a function."""
    import pandas as pd
    import ray
    from ray.data.expressions import col

    ray.init(num_cpus=scenario.cores, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    wanted, shared = ray.put(scenario.configurations()), ray.put(_only(scenario))
    lists: dict[str, Points] = {}

    def work(frame: pd.DataFrame) -> pd.DataFrame:
        if not lists:
            lists.update(ray.get(wanted))
        customer = str(frame[KEY].iloc[0])
        worked = work_customer(ray.get(shared), customer, frame.drop(columns=KEY), lists[customer])
        return pd.DataFrame([worked], columns=["customer", "end", "worker", "score", "test_score"])

    share = col(KEY).is_in([int(customer) for customer in scenario.customers])
    groups = ray.data.read_parquet(scenario.table).filter(expr=share).groupby(KEY)
    found = groups.map_groups(work, batch_format="pandas").to_pandas()
    return _outcome(scenario, [list(found.itertuples(index=False, name=None))])


def joblib_pool(scenario: Scenario) -> Outcome:
    """A call per batch in joblib's processes."""
    from joblib import Parallel, delayed

    pool, shared = Parallel(n_jobs=scenario.cores), _only(scenario)
    return _outcome(scenario, pool(delayed(work_batch)(shared, *batch) for batch in _batches(scenario)))


def plain_loop(scenario: Scenario) -> Outcome:
    """One customer after another in this process."""
    shared = _only(scenario)
    return _outcome(scenario, (work_batch(shared, *batch) for batch in _batches(scenario)))


def work_batch(scenario: Scenario, rows: pd.DataFrame, batch: Batch) -> list[Worked]:
    """The customers of a batch, one after another."""
    frames = {str(key): frame.drop(columns=KEY) for key, frame in rows.groupby(KEY)}
    return [work_customer(scenario, customer, frames[customer], points) for customer, points in batch]


def work_customer(scenario: Scenario, customer: str, frame: pd.DataFrame, points: Points) -> Worked:
    """One customer from its rows to its saved model."""
    rows = plain.divided(scenario, customer, frame)
    scores = [plain.trial(scenario, rows, point) for point in points]
    position = best(scores)
    test_score, model = plain.conclude(scenario, rows, points[position])
    _save(scenario, customer, model)
    return customer, time.time(), str(os.getpid()), scores[position], test_score


def _save(scenario: Scenario, customer: str, model: Any) -> None:
    import skops.io

    folder = Path(scenario.folder, f"models-{os.getppid()}")
    folder.mkdir(exist_ok=True)
    (folder / f"{customer}.skops").write_bytes(skops.io.dumps(model))


def _only(scenario: Scenario) -> Scenario:
    """The scenario without its list of customers, which no worker needs."""
    return replace(scenario, customers=())


def _batches(scenario: Scenario) -> Iterator[tuple[pd.DataFrame, Batch]]:
    """(rows, customers with their configurations) of each batch."""
    import pandas as pd

    table, lists = pd.read_parquet(scenario.table), list(scenario.configurations().items())
    for start in range(0, len(lists), BATCH):
        batch = lists[start : start + BATCH]
        first, last = (table[KEY].searchsorted(int(batch[end][0]), side) for end, side in ((0, "left"), (-1, "right")))
        yield table[first:last], batch


def _outcome(scenario: Scenario, found: Iterable[Iterable[Worked]]) -> Outcome:
    worked = [one for batch in found for one in batch]
    return Outcome(
        0.0,
        time.time(),
        sorted((end, scenario.trials) for _, end, *_ in worked),
        all_warm((end, worker) for _, end, worker, *_ in worked),
        {customer: (score, test_score) for customer, *_, score, test_score in worked},
    )

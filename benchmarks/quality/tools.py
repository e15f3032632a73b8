"""Tools that search: ours, and FLAML with as many CPU seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from benchmarks.quality.defaults import as_categories, nothing
from benchmarks.quality.rounds import Round
from benchmarks.quality.sets import CLASSES, TARGET

METRICS = {CLASSES: "neg_log_loss", "regression": "neg_root_mean_squared_error"}


def ours(rounds: Sequence[Round], trials: int) -> dict[str, np.ndarray]:
    """One run per set, everything at its default but the metric, in one Ray of this process.

    Who has no model is answered by what is known without one.
    """
    answers: dict[str, np.ndarray] = {}
    for name, part in groupby(rounds, key=lambda one: one.customer.set):
        with tempfile.TemporaryDirectory() as folder:
            answers |= _of_set(name, list(part), trials, Path(folder))
    return answers


def _of_set(name: str, rounds: Sequence[Round], trials: int, folder: Path) -> dict[str, np.ndarray]:
    from tuning import TuneRunner

    files = {}
    for one in rounds:
        files[one.key.replace("/", "_")] = path = folder / f"{one.key.replace('/', '_')}.parquet"
        one.given.to_parquet(path)
    task = rounds[0].customer.task
    runner = TuneRunner(
        name=f"quality-{name}",
        data={customer: str(path) for customer, path in files.items()},
        target=TARGET,
        metric=METRICS[task],
        trials=trials,
    )
    result = runner.run(str(folder / "run"))
    answers = {}
    for one in rounds:
        try:
            model = result.model(one.key.replace("/", "_"))
        except Exception:  # no model, for whatever reason: the row of the leaderboard says it
            answers[one.key] = nothing(one)
            continue
        if task != CLASSES:
            answers[one.key] = model.predict(one.unseen)
            continue
        proba = model.predict_proba(one.unseen)
        order = [list(model.task.classes).index(label) for label in one.labels]
        answers[one.key] = proba[:, order]
    return answers


def flaml(one: Round, seconds: float) -> np.ndarray:
    """FLAML's `AutoML`, one thread, `seconds` of time, everything else at its default."""
    from flaml import AutoML

    given, unseen = as_categories(one)
    classes = one.customer.task == CLASSES
    model = AutoML()
    model.fit(
        given,
        one.given[TARGET],
        task="classification" if classes else "regression",
        metric="log_loss" if classes else "rmse",
        time_budget=seconds,
        n_jobs=1,
        verbose=0,
        seed=0,
    )
    if not classes:
        return np.asarray(model.predict(unseen), dtype=float)
    order = [list(model.classes_).index(label) for label in one.labels]
    return np.asarray(model.predict_proba(unseen), dtype=float)[:, order]

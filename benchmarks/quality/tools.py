"""Tools that search: ours, and FLAML with as many CPU seconds."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.defaults import as_categories, nothing
from benchmarks.quality.rounds import Answers, Round
from benchmarks.quality.sets import CLASSES, TARGET

METRICS = {CLASSES: "log_loss", "regression": "rmse"}
SPLITS = {CLASSES: "stratified", "regression": "random"}  # rounds are drawn at random, whatever dates their rows have


def ours(rounds: Sequence[Round], keys: Mapping[str, Any]) -> Answers:
    """One run per set, everything at its default but the metric and the given keys, in one Ray of this process.

    Who has no model is answered by what is known without one.
    """
    answers = Answers()
    for name, part in groupby(rounds, key=lambda one: one.customer.set):
        with tempfile.TemporaryDirectory() as folder:
            _of_set(name, list(part), keys, Path(folder), answers)
    return answers


def _of_set(name: str, rounds: Sequence[Round], keys: Mapping[str, Any], folder: Path, answers: Answers) -> None:
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
        split=SPLITS[task],
        **keys,
    )
    result = runner.run(str(folder / "run"))
    found = result.trials().sort_values("trial")
    by_customer = {str(customer): part for customer, part in found.groupby("customer")}
    for one in rounds:
        if (own := by_customer.get(one.key.replace("/", "_"))) is not None:
            answers.trial_errors[one.key] = own["score"].where(own["state"] == "finished", math.inf).tolist()
        try:
            model = result.model(one.key.replace("/", "_"))
        except Exception:  # no model, for whatever reason: the row of the leaderboard says it
            answers.values[one.key] = nothing(one)
            answers.without_model.append(one.key)
            continue
        if task != CLASSES:
            answers.values[one.key] = model.predict(one.unseen)
            continue
        proba = model.predict_proba(one.unseen)
        order = [list(model.classes_).index(label) for label in one.labels]
        answers.values[one.key] = proba[:, order]


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

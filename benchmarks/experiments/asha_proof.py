"""ASHA against FIFO: XGBoost's rounds on three of scikit-learn's data sets, equal configurations, paired seeds.

    python -m benchmarks.experiments.asha_proof [--seeds 10]

The same random configurations of the xgboost preset are searched with fifo and with asha, on the service's own
training code (3 folds, a step is ten rounds). Compared: the best trial's score, the winners' scores on the hold-out
rows, which no search sees, and the share of rounds that asha does not train, beside what is to be expected if scores
said nothing but a fixed order of the trials.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

import schedulers
from benchmarks.intervals import interval
from schedulers.direction import worth_of
from search_spaces import algorithms, presets
from tuning.definition.definition import define
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import full_steps, study_data, train
from tuning.steps import Step
from tuning.study.core import StudyCore
from tuning.study.local_trial import LocalTrial
from tuning.study.loop import TrialLoop, in_process
from tuning.study.trial import TrialShape

TRIALS = 30
FACTOR = 3
DATA = {
    "diabetes": (load_diabetes, "regression", "r2"),
    "breast cancer": (load_breast_cancer, "binary", "log_loss"),
    "digits": (load_digits, "multiclass", "log_loss"),
}


KINDS: dict[str, dict[str, Any]] = {
    "fifo": {"name": "fifo"},
    "asha": {"name": "asha", "reduction_factor": FACTOR},
    "asha, grace_period 4": {"name": "asha", "reduction_factor": FACTOR, "grace_period": 4},
}


def search(kind: str, data: Any, metric: Metric, seed: int) -> list[LocalTrial]:
    space = presets.load("xgboost")
    spec = schedulers.parse(KINDS[kind])
    searcher = algorithms.parse("random").build(
        space, metric="score", mode="max", seed=seed, n_trials=TRIALS, points=[space.default()]
    )
    steps = full_steps(space.default(), data)
    core = StudyCore(
        searcher,
        lambda _: spec.build(metric="score", mode="max", max_steps=steps, seed=seed),
        LocalTrial,
        n_trials=TRIALS,
        metric="score",
        mode="max",
    )

    def larger_is_better(config: Any, number: int, state: Any) -> Iterator[Step]:
        for step in train(config, data, metric, seed * 1000 + number, state):
            folds = tuple(worth_of(score, metric.mode) for score in step.fold_scores)
            yield replace(step, score=worth_of(step.score, metric.mode), fold_scores=folds)

    pull = in_process(larger_is_better)
    return list(TrialLoop(core, pull, shape=lambda _: TrialShape(best_prefix=True)))


def winner(trials: list[LocalTrial]) -> LocalTrial:
    finished = [trial for trial in trials if trial.state == "finished"]
    return max(finished, key=lambda trial: trial.score if trial.score is not None else -np.inf)


def best(trials: list[LocalTrial]) -> float:
    score = winner(trials).score
    assert score is not None
    return score


def noise(trials: list[LocalTrial]) -> float:
    """The standard error of the best trial's score over its folds."""
    won = winner(trials)
    folds = won.steps[won.best or 0].fold_scores
    return float(np.std(folds, ddof=1) / np.sqrt(len(folds)))


def hold_out(trials: list[LocalTrial], data: Any, metric: Metric, seed: int) -> float:
    """The score on the hold-out of the winner, refitted on the search rows to its best step."""
    won = winner(trials)
    family = data.family(won.config["model"])
    _, rows, unseen = data.whole(family)
    params = {name: value for name, value in won.config.items() if name != "model"}
    model = family.fit(params, rows, data.task, seed * 1000 + won.number, won.steps[won.best or 0].step)
    return worth_of(metric.score(unseen.y, family.predict(model, unseen, data.task)), metric.mode)


def with_rounds(trials: list[LocalTrial], rounds: int) -> float:
    """The best of the first trials that these rounds are enough for."""
    spent = np.cumsum([trial.steps_run for trial in trials])
    return best([trial for trial, until in zip(trials, spent, strict=True) if until <= rounds] or trials[:1])


def limit(steps: int, kind: str) -> float:
    """The share saved with endlessly many trials: a third of them pass each rung."""
    rungs = [KINDS[kind].get("grace_period", 1)]
    while rungs[-1] * FACTOR < steps:
        rungs.append(rungs[-1] * FACTOR)
    spent = sum(
        (end - begin) / FACTOR**k for k, (begin, end) in enumerate(zip([0, *rungs], [*rungs, steps], strict=True))
    )
    return 1 - spent / steps


def expected(steps: int, kind: str, draws: int = 2000) -> float:
    """The share saved with this many trials in a random order, the same at every step; trial 0 runs to its end."""
    rng = random.Random(0)
    spec = schedulers.parse(KINDS[kind])
    spent = 0
    for _ in range(draws):
        scheduler = spec.build(metric="score", mode="max", max_steps=steps, seed=0)
        for number in range(TRIALS):
            trial: Any = SimpleNamespace(trial_id=str(number))
            scheduler.on_trial_add(None, trial)
            score = rng.random()
            for step in range(1, steps + 1):
                spent += 1
                result = {"training_iteration": step, "score": score}
                if scheduler.on_trial_result(None, trial, result) == "STOP" and number > 0:
                    break
            scheduler.on_trial_complete(None, trial, {})
    return 1 - spent / (draws * TRIALS * steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    before = time.perf_counter()
    lines = [
        "| data, metric | scheduler | best of fifo | asha − fifo, mean [95 % interval] | on the hold-out "
        "| standard error of a score | fifo with its rounds | same winner | rounds saved | CPU seconds saved |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    steps = 0
    others = [kind for kind in KINDS if kind != "fifo"]
    for name, (load, task, metric_name) in DATA.items():
        frame = load(as_frame=True).frame.sample(n=400, random_state=0)
        errors: list[float] = []
        figures: dict[str, list[list[float]]] = {kind: [] for kind in others}
        for seed in range(arguments.seeds):
            data = study_data(frame, define({"data": "x", "target": "target"}), task, seed)
            metric = Metric(metric_name, data.task)
            found = {kind: search(kind, data, metric, seed) for kind in KINDS}
            spent = {kind: sum(trial.steps_run for trial in trials) for kind, trials in found.items()}
            cpu = {kind: sum(trial.fit_seconds for trial in trials) for kind, trials in found.items()}
            unseen = {kind: hold_out(trials, data, metric, seed) for kind, trials in found.items()}
            errors.append(noise(found["fifo"]))
            steps = spent["fifo"] // TRIALS
            for kind in others:
                scores = [best(found["fifo"]), best(found[kind]), with_rounds(found["fifo"], spent[kind])]
                saved = [1 - spent[kind] / spent["fifo"], 1 - cpu[kind] / cpu["fifo"]]
                figures[kind].append([*scores, unseen[kind] - unseen["fifo"], *saved])
                print(name, kind, seed, scores, f"saved {saved[0]:.2f}", flush=True)
        for kind in others:
            fifo, asha, same_rounds, beyond, rounds, seconds = np.array(figures[kind]).T
            mean, low, high = interval(asha - fifo)
            away, lower, upper = interval(beyond)
            lines.append(
                f"| {name}, {metric_name} | {kind} | {fifo.mean():.4f} | {mean:+.4f} [{low:+.4f}, {high:+.4f}] "
                f"| {away:+.4f} [{lower:+.4f}, {upper:+.4f}] | {np.mean(errors):.4f} | {same_rounds.mean():.4f} "
                f"| {(fifo == asha).sum()} of {arguments.seeds} | {rounds.mean():.0%} | {seconds.mean():.0%} |"
            )
    text = (
        f"XGBoost preset, {TRIALS} random trials of {steps} steps (200 rounds), 3 folds, 400 rows of each data set, "
        f"{arguments.seeds} paired seeds (`python -m benchmarks.experiments.asha_proof`):\n\n"
        + "\n".join(lines)
        + f"\n\nRounds saved if scores were nothing but a fixed random order of the {TRIALS} trials (the first "
        "arrivals pass every rung, and trial 0 is protected), and with endlessly many trials: "
        + ", ".join(f"{kind}: {expected(steps, kind):.0%} and {limit(steps, kind):.0%}" for kind in others)
        + "."
    )
    print(text, f"\n{time.perf_counter() - before:.0f} s")


if __name__ == "__main__":
    main()

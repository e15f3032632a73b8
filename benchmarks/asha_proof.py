"""ASHA against FIFO: XGBoost's rounds on three of scikit-learn's data sets, equal configurations, paired seeds.

    python -m benchmarks.asha_proof [--seeds 10] [--write]

The same random configurations of the xgboost preset are searched with fifo and with asha, on the service's own
training code (3 folds, a step is ten rounds). Compared: the best trial's score, and the share of rounds that asha
does not train, beside what is to be expected if scores said nothing but a fixed order of the trials. `--write` puts
the table into docs/schedulers.md.
"""

from __future__ import annotations

import argparse
import random
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

import schedulers
from benchmarks.proofs import interval, write_section
from search_spaces import algorithms, presets
from tuning.driving import Drive
from tuning.evaluation import full_steps, prepare_data, train
from tuning.metrics import Metric
from tuning.trials import FinishedTrial

TRIALS = 30
FACTOR = 3
DATA = {
    "diabetes": (load_diabetes, "regression", "r2"),
    "breast cancer": (load_breast_cancer, "binary", "neg_log_loss"),
    "digits": (load_digits, "multiclass", "neg_log_loss"),
}


def search(name: str, data: Any, metric: Metric, seed: int) -> list[FinishedTrial]:
    space = presets.load("xgboost")
    spec = schedulers.parse({"name": "asha", "reduction_factor": FACTOR} if name == "asha" else name)
    searcher = algorithms.parse("random").build(
        space, metric="score", mode="max", seed=seed, trials=TRIALS, points=[space.default()]
    )
    steps = full_steps(space.default(), data)
    return list(
        Drive(
            searcher,
            lambda _: spec.build(metric="score", mode="max", max_steps=steps, seed=seed),
            lambda config, number, state: train(config, data, metric, seed * 1000 + number, state),
            trials=TRIALS,
            metric="score",
            mode="max",
            best_prefix=lambda _: True,
        )
    )


def best(trials: list[FinishedTrial]) -> float:
    return max(trial.score for trial in trials if trial.state == "finished" and trial.score is not None)


def noise(trials: list[FinishedTrial]) -> float:
    """The standard error of the best trial's score over its folds."""
    finished = [trial for trial in trials if trial.state == "finished"]
    winner = max(finished, key=lambda trial: trial.score if trial.score is not None else -np.inf)
    folds = winner.steps[winner.best or 0].fold_scores
    return float(np.std(folds, ddof=1) / np.sqrt(len(folds)))


def with_rounds(trials: list[FinishedTrial], rounds: int) -> float:
    """The best of the first trials that these rounds are enough for."""
    spent = np.cumsum([trial.steps_run for trial in trials])
    return best([trial for trial, until in zip(trials, spent, strict=True) if until <= rounds] or trials[:1])


def limit(steps: int) -> float:
    """The share saved with endlessly many trials: a third of them pass each rung."""
    rungs = [1]
    while rungs[-1] * FACTOR < steps:
        rungs.append(rungs[-1] * FACTOR)
    spent = sum(
        (end - begin) / FACTOR**k for k, (begin, end) in enumerate(zip([0, *rungs], [*rungs, steps], strict=True))
    )
    return 1 - spent / steps


def expected(steps: int, draws: int = 2000) -> float:
    """The share saved with this many trials in a random order, the same at every step; trial 0 runs to its end."""
    rng = random.Random(0)
    spec = schedulers.parse({"name": "asha", "reduction_factor": FACTOR})
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
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    before = time.perf_counter()
    lines = [
        "| data, metric | fifo | asha | asha − fifo, mean [95 % interval] | standard error of a score "
        "| fifo with asha's rounds | same winner | rounds saved | CPU seconds saved |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    steps = 0
    for name, (load, task, metric_name) in DATA.items():
        frame = load(as_frame=True).frame.sample(n=400, random_state=0)
        bests, errors, saved, seconds, same = [], [], [], [], 0
        for seed in range(arguments.seeds):
            data = prepare_data(frame, target="target", task=task, seed=seed)
            metric = Metric(metric_name, data.task)
            found = {kind: search(kind, data, metric, seed) for kind in ("fifo", "asha")}
            spent = {kind: sum(trial.steps_run for trial in trials) for kind, trials in found.items()}
            cpu = {kind: sum(trial.fit_seconds for trial in trials) for kind, trials in found.items()}
            bests.append([best(found["fifo"]), best(found["asha"]), with_rounds(found["fifo"], spent["asha"])])
            errors.append(noise(found["fifo"]))
            same += bests[-1][0] == bests[-1][1]
            saved.append(1 - spent["asha"] / spent["fifo"])
            seconds.append(1 - cpu["asha"] / cpu["fifo"])
            steps = spent["fifo"] // TRIALS
            print(name, seed, bests[-1], f"saved {saved[-1]:.2f}", flush=True)
        figures = np.array(bests)
        mean, low, high = interval(figures[:, 1] - figures[:, 0])
        lines.append(
            f"| {name}, {metric_name} | {figures[:, 0].mean():.4f} | {figures[:, 1].mean():.4f} "
            f"| {mean:+.4f} [{low:+.4f}, {high:+.4f}] | {np.mean(errors):.4f} | {figures[:, 2].mean():.4f} "
            f"| {same} of {arguments.seeds} | {np.mean(saved):.0%} | {np.mean(seconds):.0%} |"
        )
    text = (
        f"XGBoost preset, {TRIALS} random trials of {steps} steps (200 rounds), 3 folds, 400 rows of each data set, "
        f"{arguments.seeds} paired seeds (`python -m benchmarks.asha_proof`):\n\n"
        + "\n".join(lines)
        + f"\n\nTo be expected: {expected(steps):.0%} of the rounds with {TRIALS} trials one after another in random "
        "order that is the same at every step (the first arrivals pass every rung, and trial 0 is protected), "
        f"{limit(steps):.0%} with endlessly many. What asha loses against four to eight times its rounds is less than "
        "the standard error of a cross-validated score; with the same rounds fifo finds less."
    )
    print(text, f"\n{time.perf_counter() - before:.0f} s")
    if arguments.write:
        write_section("asha proof", text)


if __name__ == "__main__":
    main()

"""PBT against random search: an MLP on scikit-learn's digits, equal epochs, paired seeds.

    python -m benchmarks.experiments.pbt_proof [--seeds 20]

Both start from the same configurations. The score is the log loss on a validation part; the winner's log loss and
accuracy on a test part, which no search sees, are compared. Also checked: a generator started from a donor's state
gives the donor's score.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import schedulers
from benchmarks.intervals import interval
from search_spaces import Float, Int, SearchSpace, algorithms
from tuning.models.base import Matrix
from tuning.models.families.mlp import MLPFamily
from tuning.preprocessing.task import MULTICLASS, Task
from tuning.steps import Step
from tuning.study.core import StudyCore
from tuning.study.local_trial import LocalTrial
from tuning.study.loop import TrialLoop, in_process
from tuning.study.mutations import mutations
from tuning.study.trial import TrialShape

TRIALS, EPOCHS = 17, 20  # trial 0 is the default configuration and stands outside of the population
TASK = Task(MULTICLASS, tuple(range(10)))
SPACE = SearchSpace(
    [
        Float("learning_rate_init", 1e-4, 0.3, log=True, default=1e-3),
        Float("alpha", 1e-7, 10.0, log=True, default=1e-4),
        Int("batch_size", 16, 256, log=True, default=128),
    ]
)


class ShortMLP(MLPFamily):
    """The MLP family with steps of one epoch."""

    step_length = 1
    total_steps = EPOCHS


FAMILY = ShortMLP()


@dataclass
class Digits:
    train: Matrix
    valid: Matrix
    test: Matrix

    @classmethod
    def split(cls, seed: int) -> Digits:
        X, y = load_digits(return_X_y=True)
        rest, test, y_rest, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=seed)
        train, valid, y_train, y_valid = train_test_split(
            rest, y_rest, test_size=0.4, stratify=y_rest, random_state=seed
        )
        scaler = StandardScaler().fit(train)
        parts = ((train, y_train), (valid, y_valid), (test, y_test))
        return cls(*(Matrix(np.ascontiguousarray(scaler.transform(rows)), labels) for rows, labels in parts))

    def start(self, seed: int) -> Any:
        def train(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
            both = Matrix(np.vstack([self.valid.X, self.test.X]), np.concatenate([self.valid.y, self.test.y]))
            middle = len(self.valid.y)
            own = {"width": 32, **config}
            done, model = state or (0, None)
            grown = FAMILY.grow(own, self.train, both, TASK, seed * 1000 + number, model)
            for epoch, (prediction, get_state) in enumerate(grown, start=done + 1):
                proba = np.clip(prediction.proba, 1e-12, 1.0)
                yield Step(
                    epoch,
                    -log_loss(self.valid.y, proba[:middle], labels=range(10)),
                    metrics={
                        "loss": log_loss(self.test.y, proba[middle:], labels=range(10)),
                        "accuracy": accuracy_score(self.test.y, proba[middle:].argmax(axis=1)),
                    },
                    get_state=lambda epoch=epoch, get_state=get_state: (epoch, get_state()),
                )

        return train


def search(name: str, seed: int) -> list[LocalTrial]:
    """One study; random search is the scheduler fifo."""
    options = {"name": name} | ({"perturbation_interval": 2} if name == "pbt" else {})
    spec = schedulers.parse(options)
    varied = mutations(SPACE, SPACE.default(), FAMILY.frozen, "model")
    searcher = algorithms.parse("random").build(
        SPACE, metric="score", mode="max", seed=seed, n_trials=TRIALS, points=[SPACE.default()]
    )
    core = StudyCore(
        searcher,
        lambda _: spec.build(metric="score", mode="max", max_steps=EPOCHS, seed=seed, mutations=varied),
        LocalTrial,
        n_trials=TRIALS,
        metric="score",
        mode="max",
    )
    start = in_process(Digits.split(seed).start(seed))
    return list(TrialLoop(core, start, pauses=spec.pauses, shape=lambda _: TrialShape(best_prefix=True)))


def winner(trials: list[LocalTrial]) -> tuple[float, float, float]:
    """Validation loss, test loss and test accuracy of the trial with the best validation score."""
    best = max((trial for trial in trials if trial.state == "finished"), key=lambda trial: trial.score or -np.inf)
    step = best.steps[best.best or 0]
    return -step.score, step.metrics["loss"], step.metrics["accuracy"]


def donor_check(seed: int) -> float:
    """The largest difference between a donor's score and the score of a model loaded from its state."""
    digits = Digits.split(seed)
    worst = 0.0
    for learning_rate in (1e-3, 1e-2):
        config = {**SPACE.default(), "learning_rate_init": learning_rate}
        generator = digits.start(seed)(config, 0, None)
        for _ in range(5):
            step = next(generator)
        _, (model, _) = step.get_state()
        proba = np.clip(FAMILY.predict(model, digits.valid, TASK).proba, 1e-12, 1.0)
        worst = max(worst, abs(step.score + log_loss(digits.valid.y, proba, labels=range(10))))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    before = time.perf_counter()
    pairs = []
    for seed in range(arguments.seeds):
        found = {name: search(name, seed) for name in ("fifo", "pbt")}
        epochs = {name: sum(trial.steps_run for trial in trials) for name, trials in found.items()}
        assert epochs["fifo"] == epochs["pbt"], epochs
        pairs.append((winner(found["fifo"]), winner(found["pbt"])))
        print(f"seed {seed}: random {pairs[-1][0]}, pbt {pairs[-1][1]}", flush=True)
    figures = np.array(pairs)  # (seeds, 2 searches, 3 figures)
    lines = ["| | random search | pbt | pbt − random, mean [95 % interval] | pbt better |", "|---|---|---|---|---|"]
    rows = ("validation log loss", "test log loss", "test accuracy")
    for column, (row, better) in enumerate(zip(rows, (-1, -1, 1), strict=True)):
        random_, pbt = figures[:, 0, column], figures[:, 1, column]
        difference = pbt - random_
        mean, low, high = interval(difference)
        wins = int((better * difference > 0).sum())
        lines.append(
            f"| {row} | {random_.mean():.4f} | {pbt.mean():.4f} | {mean:+.4f} [{low:+.4f}, {high:+.4f}] "
            f"| {wins} of {len(pairs)} |"
        )
    gap = max(donor_check(seed) for seed in range(3))
    text = (
        f"MLP (32 units) on scikit-learn's digits, {TRIALS} trials × {EPOCHS} epochs in both searches, the same first "
        f"configurations, {len(pairs)} paired seeds (`python -m benchmarks.experiments.pbt_proof`):\n\n"
        + "\n".join(lines)
        + f"\n\nA model loaded from a donor's state scores as the donor does (largest difference {gap:.1e})."
    )
    print(text, f"\n{time.perf_counter() - before:.0f} s")


if __name__ == "__main__":
    main()

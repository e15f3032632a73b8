"""Which rows a contender gets, which it does not, and how its answer is judged."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split

from benchmarks.quality.sets import CLASSES, TARGET, Customer

UNSEEN = 0.2


@dataclass(frozen=True)
class Round:
    """One customer with one outer split. given: with the target; unseen: without it; truth: its target."""

    customer: Customer
    repetition: int
    given: pd.DataFrame
    unseen: pd.DataFrame
    truth: np.ndarray

    @property
    def key(self) -> str:
        return f"{self.customer.set}/{self.customer.name}/{self.repetition}"

    @property
    def labels(self) -> list[str]:
        """The classes of the given rows, sorted; empty for regression."""
        return sorted(self.given[TARGET].unique()) if self.customer.task == CLASSES else []


@dataclass
class Answers:
    """What a contender says of the unseen rows, by round; of ours also the error of every trial on its folds, in the
    order of the search (infinite where a trial did not finish).

    without_model: rounds for which it had none, answered by what is known without one.
    """

    values: dict[str, np.ndarray] = field(default_factory=dict)
    trial_errors: dict[str, list[float]] = field(default_factory=dict)
    without_model: list[str] = field(default_factory=list)


def rounds(customer: Customer, repetitions: int, most: int | None = None) -> list[Round]:
    """Outer splits, stratified by class, drawn from the customer's name and the repetition alone.

    most: given rows, the first of the shuffled ones; a split that leaves a class less than two of them is none.
    """
    found = []
    for number in range(repetitions):
        seed = zlib.crc32(f"{customer.set}/{customer.name}/{number}".encode())
        strata = customer.rows[TARGET] if customer.task == CLASSES else None
        given, unseen = train_test_split(customer.rows, test_size=UNSEEN, random_state=seed, stratify=strata)
        given, truth = given[:most], unseen[TARGET].to_numpy()
        if strata is not None and given[TARGET].value_counts().reindex(strata.unique(), fill_value=0).min() < 2:
            continue
        found.append(
            Round(
                customer,
                number,
                given.reset_index(drop=True),
                unseen.drop(columns=TARGET).reset_index(drop=True),
                truth,
            )
        )
    return found


def error(one: Round, answer: np.ndarray) -> float:
    """Smaller is better: root mean squared error, or log loss over the classes of the given rows.

    answer: (n,) numbers, or (n, classes) probabilities in the order of `labels`.
    """
    if one.customer.task == CLASSES:
        chances = np.clip(answer, 1e-6, 1.0)
        return float(log_loss(one.truth, chances / chances.sum(axis=1, keepdims=True), labels=one.labels))
    return float(np.sqrt(mean_squared_error(one.truth, answer)))

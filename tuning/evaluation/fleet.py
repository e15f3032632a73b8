"""How much of a customer's model is its own, and how much the pool's: drawn to what is best for the fleet.

Few rows cannot tell which of two models is better, and the best of twenty trials looks better on them than it is. So
the weights that a customer's rows ask for are drawn to the mean weights of a panel of customers, as if `ROWS` rows told
these. In the panel a customer's own answer is that of its study's first trial, which nobody chose by the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tuning.evaluation.greedy import FoldScores, greedy
from tuning.evaluation.metrics import Metric
from tuning.evaluation.pooling import pooled_answers
from tuning.evaluation.study_data import StudyData
from tuning.models.pooled import OWN, RunPool

ROWS = 100  # search rows, from which on a customer's rows say more than the fleet
LEAST = 0.05  # a smaller weight is none: a model is fitted, loaded and asked for it


def best_weights(answers: Sequence[np.ndarray], scores: Callable[[Sequence[np.ndarray]], list[float]]) -> np.ndarray:
    """Return (answers,) weights with which answers score best together, by greedy picks. scores: as of `greedy`."""
    alone = scores(answers)
    picks, _ = greedy(answers, scores, alone.index(max(alone)))
    return np.bincount(picks, minlength=len(answers)) / len(picks)


def drawn_weights(own: np.ndarray, fleet: np.ndarray, rows: int) -> np.ndarray:
    """Return a customer's weights after they were drawn to the fleet's. rows: search rows of the customer."""
    share = rows / (rows + ROWS)
    weights: np.ndarray = share * own + (1.0 - share) * fleet
    return weights


def fleet_weights(pool: RunPool, panel: Mapping[str, tuple[StudyData, np.ndarray]], metric: Metric) -> dict[str, float]:
    """Return the mean weights of own models and of each form; empty where the panel says nothing.

    panel: data of customers, each with what its first trial says of the rows that the folds left out.
    """
    found = []
    for name, (data, first) in panel.items():
        if name in pool.customers:
            pooled = [np.concatenate(each.folds) for each in pooled_answers(pool, data, name)]
            found.append(best_weights([first, *pooled], FoldScores(data, metric)))
    names = [OWN, *(each.whole.form for each in pool.forms)]
    return dict(zip(names, np.mean(found, axis=0).tolist(), strict=True)) if found else {}

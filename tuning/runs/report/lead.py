"""The answer in one sentence, for somebody who knows nothing of tuning."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import amount, params_text, percent, value_text
from tuning.records.figures import FigureRow
from tuning.records.gains import compared_gains, is_error
from tuning.records.schema import OK
from tuning.records.user_scores import metric_text, user_score
from tuning.runs.outcome import by_chance
from tuning.runs.results import RunResult
from tuning.runs.run_counts import RunCounts

CLEAR = 2.0  # standard errors that the number of better customers is away from half


def lead(result: RunResult, counts: RunCounts) -> str:
    """How many customers have a model, how good these are on rows that they have not seen, and what tuning gained."""
    board = result.board()
    studies = board.standings.best_studies(["status", "cv_score", "test_score", "baseline_test_score", "gain"])
    ok = studies.filter(pc.equal(studies["status"], OK))
    left = f"The run has not ended, {amount(result.unfinished, 'study')} left: " if result.unfinished else ""
    if not len(ok):
        return f"{left}{result.outcome(counts)}; the reasons are below."
    metric = metric_text(board.metric, board.mode)
    if len(board) == 1:
        return left + of_one(board.first(1)[0], metric)
    outcome = f"{left}{result.outcome(counts)}"
    scores = _values(ok, "test_score")
    shown = value_text(user_score(float(np.median(scores if len(scores) else _values(ok, "cv_score"))), board.metric))
    if not len(scores):
        return f"{outcome}; the typical best score is {shown} ({metric})."
    typical = f"on rows that it has never seen, the typical one scores {shown} ({metric})"
    return f"{outcome}; {typical}{gained(*_gains(ok, board.metric))}."


def _values(studies: pa.Table, column: str) -> np.ndarray:
    values = np.array(studies[column].drop_null().to_pylist(), dtype=float)
    finite: np.ndarray = values[np.isfinite(values)]
    return finite


def _gains(studies: pa.Table, metric: str) -> tuple[np.ndarray, bool]:
    """The customers' gains as `compared_gains` has them, and whether they are shares of the baseline's error."""
    gains = compared_gains(studies["gain"].to_pylist(), studies["baseline_test_score"].to_pylist(), metric)
    return gains[~np.isnan(gains)], is_error(metric)


def gained(gains: np.ndarray, relative: bool = False) -> str:
    """What tuning gained over all customers, and by a sign test whether chance would do the same.

    gains: (n,), NaN not among them. relative: they are shares of the baseline's error.
    """
    better, worse = int((gains > 0).sum()), int((gains < 0).sum())
    if not better + worse:
        return ""
    counts = f"{better:,} better than the model tried first, {worse:,} worse"
    off = (better - worse) / math.sqrt(better + worse)
    if abs(off) <= CLEAR:
        low, high = by_chance(better + worse)
        return (
            f"; tuning made {counts}: chance alone makes {low:,} to {high:,} of these {better + worse:,} better, so "
            "the models are about as good as without tuning"
        )
    middle = abs(float(np.median(gains)))
    if not middle:
        return f"; tuning made {counts}, most of them by nothing"
    by = f"{percent(middle)} of its error" if relative else value_text(middle)
    return f"; tuning made {counts}" + f", typically by {by}" * math.isfinite(middle)


def of_one(row: FigureRow, metric: str) -> str:
    """The answer for a single customer."""
    if row["test_score"] is None:
        values = params_text(row["params"]) if isinstance(row["params"], dict) else ""
        best = "The only trial" if row["trials"] == 1 else f"The best of {row['trials']} trials"
        return f"{best} scores {value_text(row['cv_score'])} ({metric}), with {values}."
    model = (
        f"The model of {row['customer']}, {row['model']}, scores {value_text(row['test_score'])} on rows that it has "
        f"never seen ({metric})"
    )
    if row["baseline_test_score"] is None:
        return f"{model}."
    return f"{model}; the model tried first, {row['baseline']}, scores {value_text(row['baseline_test_score'])}."

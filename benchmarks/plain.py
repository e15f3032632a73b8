"""The work as a careful user writes it with scikit-learn and XGBoost alone: what the other contenders call.

The leanest plain form: arrays, rows split once per customer, a pipeline per fold, no `cross_val_score` around it
(which costs half as much again at five milliseconds). Rows, folds and configurations are those that ours has, and so
are the fits at the end: the winner on the rows of the search, for its hold-out score, and on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.workload import FOLDS, KEY, TARGET, TEST, Scenario, arguments, split_seed

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


@dataclass
class Rows:
    """One customer's arrays; folds within the rows of the search. X_all, y_all: with the hold-out."""

    X_all: np.ndarray
    y_all: np.ndarray
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]


def load(scenario: Scenario, customer: str) -> Rows:
    """Read, hold out, make folds."""
    return divided(scenario, customer, read(scenario, customer))


def read(scenario: Scenario, customer: str) -> pd.DataFrame:
    """One customer's rows."""
    import pandas as pd

    if not scenario.shape.keyed:
        return pd.read_csv(scenario.path(customer))
    return pd.read_parquet(scenario.table, filters=[(KEY, "==", int(customer))]).drop(columns=KEY)


def divided(scenario: Scenario, customer: str, frame: pd.DataFrame) -> Rows:
    """Hold out, make folds."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    X, y = frame.drop(columns=TARGET).to_numpy(), frame[TARGET].to_numpy()
    classes = scenario.shape.task != "regression"
    search, test = train_test_split(
        np.arange(len(y)), test_size=TEST, random_state=split_seed(customer), stratify=y if classes else None
    )
    search.sort()
    test.sort()
    folds = list(splitter(scenario, customer).split(X[search], y[search]))
    return Rows(X, y, X[search], y[search], X[test], y[test], folds)


def splitter(scenario: Scenario, customer: str) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if scenario.shape.task == "regression" else StratifiedKFold
    return kind(FOLDS, shuffle=True, random_state=split_seed(customer))


def estimator(scenario: Scenario, config: dict[str, Any]) -> Any:
    """The unfitted model; scaling is part of it where the model needs it, so that it is fitted inside each fold."""
    if scenario.shape.rounds is None:
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(), Ridge(**arguments(config)))
    from xgboost import XGBClassifier

    return XGBClassifier(**arguments(config), tree_method="hist", n_jobs=1)


def scorer(scenario: Scenario) -> Any:
    from sklearn.metrics import get_scorer

    return get_scorer(scenario.shape.metric)


def steps(scenario: Scenario, rows: Rows, config: dict[str, Any]) -> Iterator[float]:
    """One trial, a fit and a score per fold: the mean of the folds so far after each."""
    score, total = scorer(scenario), 0.0
    for number, (train, valid) in enumerate(rows.folds, start=1):
        model = estimator(scenario, config).fit(rows.X[train], rows.y[train])
        total += score(model, rows.X[valid], rows.y[valid])
        yield float(total / number)


def trial(scenario: Scenario, rows: Rows, config: dict[str, Any]) -> float:
    """One trial to its end."""
    *_, score = steps(scenario, rows, config)
    return score


def conclude(scenario: Scenario, rows: Rows, config: dict[str, Any]) -> tuple[float, Any]:
    """The winner, fitted on all rows of the search and scored once on the hold-out; then its model of all rows."""
    model = estimator(scenario, config).fit(rows.X, rows.y)
    score = float(scorer(scenario)(model, rows.X_test, rows.y_test))
    return score, estimator(scenario, config).fit(rows.X_all, rows.y_all)

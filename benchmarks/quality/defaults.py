"""Models with their defaults, as a user writes them who tries one beside a search: one process, one thread.

Text columns are one-hot encoded where a model needs numbers, and given as categories where it takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.quality.rounds import Answers, Round
from benchmarks.quality.sets import CLASSES, TARGET

Answer = Callable[[Round], np.ndarray]


def linear(one: Round, scoring: str | None = None) -> np.ndarray:
    """Ridge or logistic regression, whose penalty is chosen by built-in cross-validation.

    scoring: of the logistic one, in place of the accuracy.
    """
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV

    if one.customer.task == CLASSES:
        return _fitted(one, LogisticRegressionCV(Cs=10, max_iter=1000, scoring=scoring), scale=True)
    return _fitted(one, RidgeCV(alphas=np.logspace(-3, 3, 13)), scale=True)


def forest(one: Round) -> np.ndarray:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    return _fitted(one, _for_task(one, RandomForestClassifier, RandomForestRegressor)(random_state=0, n_jobs=1))


def extra_trees(one: Round) -> np.ndarray:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    return _fitted(one, _for_task(one, ExtraTreesClassifier, ExtraTreesRegressor)(random_state=0, n_jobs=1))


def hist_boosting(one: Round) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    make = _for_task(one, HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    return _with_categories(one, make(random_state=0, categorical_features="from_dtype"))


def xgboost(one: Round) -> np.ndarray:
    from xgboost import XGBClassifier, XGBRegressor

    return _with_categories(one, _for_task(one, XGBClassifier, XGBRegressor)(n_jobs=1, enable_categorical=True))


def lightgbm(one: Round) -> np.ndarray:
    from lightgbm import LGBMClassifier, LGBMRegressor

    return _with_categories(one, _for_task(one, LGBMClassifier, LGBMRegressor)(n_jobs=1, verbose=-1))


def catboost(one: Round) -> np.ndarray:
    from catboost import CatBoostClassifier, CatBoostRegressor

    given, unseen = features(one)
    text = text_columns(given)
    given, unseen = (part.fillna(dict.fromkeys(text, "missing")) for part in (given, unseen))
    make = _for_task(one, CatBoostClassifier, CatBoostRegressor)
    model = make(thread_count=1, verbose=False, allow_writing_files=False, random_seed=0, cat_features=text)
    return _answer(one, model.fit(given, one.given[TARGET].to_numpy()), unseen)


def vote(one: Round) -> np.ndarray:
    """The mean of what the forest, extra trees, the boosters and the linear model say."""
    return np.mean([voter(one) for voter in (linear, forest, extra_trees, hist_boosting, xgboost)], axis=0)


def halving(one: Round) -> np.ndarray:
    """scikit-learn's `HalvingRandomSearchCV` over histogram boosting: its defaults, usual ranges."""
    from scipy.stats import loguniform, randint
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401  # makes the next import possible
    from sklearn.model_selection import HalvingRandomSearchCV

    make = _for_task(one, HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    ranges = {
        "learning_rate": loguniform(0.01, 0.3),
        "max_leaf_nodes": randint(4, 64),
        "min_samples_leaf": randint(2, 40),
        "l2_regularization": loguniform(1e-6, 10),
    }
    scoring = "neg_log_loss" if one.customer.task == CLASSES else "neg_root_mean_squared_error"
    model = make(random_state=0, categorical_features="from_dtype")
    search = HalvingRandomSearchCV(model, ranges, scoring=scoring, random_state=0, n_jobs=1)
    return _with_categories(one, search)


def nothing(one: Round) -> np.ndarray:
    """What is known without a model: the median, or the shares of the classes."""
    if one.customer.task == CLASSES:
        share = one.given[TARGET].value_counts(normalize=True)[one.labels].to_numpy()
        return np.tile(share, (len(one.unseen), 1))
    return np.full(len(one.unseen), one.given[TARGET].median())


def of_all(answer: Answer, rounds: Sequence[Round]) -> Answers:
    """What one model of all customers' rows says, with the customer as a column, per set and repetition."""
    answers = Answers()
    for _, part in groupby(sorted(rounds, key=_together), key=_together):
        each = list(part)
        given, unseen = (
            pd.concat([rows.assign(_customer=f"_{one.customer.name}") for one, rows in named], ignore_index=True)
            for named in ([(one, one.given) for one in each], [(one, one.unseen) for one in each])
        )
        whole = replace(each[0], given=given, unseen=unseen)
        said = np.split(answer(whole), np.cumsum([len(one.unseen) for one in each])[:-1])
        for one, own in zip(each, said, strict=True):
            answers.values[one.key] = own[:, np.isin(whole.labels, one.labels)] if whole.labels else own
    return answers


def _together(one: Round) -> tuple[str, int]:
    return one.customer.set, one.repetition


def features(one: Round) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(given, unseen) without the target."""
    return one.given.drop(columns=TARGET), one.unseen


def text_columns(rows: pd.DataFrame) -> list[str]:
    """The names of the columns that hold text."""
    return [name for name in rows.columns if not pd.api.types.is_numeric_dtype(rows[name])]


def as_categories(one: Round) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(given, unseen) with text as categories, those of the given rows."""
    given, unseen = features(one)
    for name in text_columns(given):
        kind = pd.CategoricalDtype(sorted(given[name].dropna().unique()))
        given, unseen = (part.assign(**{name: part[name].astype(kind)}) for part in (given, unseen))
    return given, unseen


def _for_task(one: Round, classifier: Any, regressor: Any) -> Any:
    return classifier if one.customer.task == CLASSES else regressor


def _target(one: Round) -> np.ndarray:
    """Numbers, or the positions of the labels (XGBoost takes no text)."""
    if one.customer.task == CLASSES:
        return np.searchsorted(one.labels, one.given[TARGET].to_numpy())
    return one.given[TARGET].to_numpy()


def _answer(one: Round, model: Any, unseen: pd.DataFrame) -> np.ndarray:
    found = model.predict_proba(unseen) if one.customer.task == CLASSES else model.predict(unseen)
    return np.asarray(found, dtype=float)


def _with_categories(one: Round, model: Any) -> np.ndarray:
    given, unseen = as_categories(one)
    return _answer(one, model.fit(given, _target(one)), unseen)


def _fitted(one: Round, model: Any, scale: bool = False) -> np.ndarray:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    given, unseen = features(one)
    text = text_columns(given)
    numbers = [name for name in given.columns if name not in text]
    filled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler() if scale else "passthrough")
    encoder = make_column_transformer((filled, numbers), (OneHotEncoder(handle_unknown="ignore"), text))
    return _answer(one, make_pipeline(encoder, model).fit(given, _target(one)), unseen)

"""Every split of every small table: a model that is scored, or a sentence of ours."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from prepared_rows import prepare_data

from tuning.errors import CustomerError
from tuning.evaluation.metrics import DEFAULT_METRIC, Metric
from tuning.evaluation.study_data import StudyData, keep_scorable_folds, train
from tuning.notes import DataCode
from tuning.preprocessing.splitting import split_rows
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION

SPLITS = {
    "group": {"group": "patient"},
    "random": {"type": "random"},
    "default": {},
    "time": {"type": "time", "column": "day"},
    "stable": {"type": "stable"},
}
OURS = {
    DataCode.TOO_FEW_PARTS,
    DataCode.CLASS_OF_ONE_ROW,
    DataCode.ONE_CLASS,
    DataCode.HOLD_OUT_LEAVES,
    DataCode.TARGET_CONSTANT,
    DataCode.UNDEFINED,
}


def small_tables() -> Iterator[tuple[str, pd.DataFrame]]:
    """Of 4 to 24 rows in 1 to 6 groups and 1 to 5 classes, spread over groups in three ways."""
    rng = np.random.default_rng(0)
    for rows, groups, classes, kind in (
        (rows, groups, classes, kind)
        for rows in (4, 8, 12, 24)
        for groups in (1, 2, 3, 6)
        for classes in (0, 1, 2, 3, 5)
        for kind in ("mixed", "random", "of one class each")
    ):
        number = np.arange(rows)
        y = rng.normal(size=rows) if classes == 0 else number % classes
        patient = {"mixed": number % groups, "random": rng.integers(0, groups, rows)}.get(
            kind, number % max(1, classes)
        )
        yield (
            REGRESSION if classes == 0 else BINARY if classes < 3 else MULTICLASS,
            pd.DataFrame({"a": rng.normal(size=rows), "patient": patient.astype(str), "day": number, "y": y}),
        )


def divided(task: str, frame: pd.DataFrame, split: dict[str, object]) -> StudyData:
    data = prepare_data(frame, target="y", task=task, seed=0, split=split)
    return keep_scorable_folds(data, Metric(DEFAULT_METRIC[task], data.task))


@pytest.mark.long
@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize(("test", "folds"), [(0.2, 3), (0.5, 5), (0.1, 10)])
def test_small_tables_are_scored_or_refused_in_our_words(name: str, test: float, folds: int) -> None:
    scored, refused = 0, set()
    with warnings.catch_warnings(action="ignore"):
        for task, frame in small_tables():
            try:
                data = divided(task, frame, {**SPLITS[name], "test": test, "folds": folds})
            except CustomerError as error:
                refused.add(error.note.code)
                continue
            assert len(data.split.test) > 0
            assert 0 < len(data.split.folds) <= folds
            model = "ridge" if task == REGRESSION else "logistic"
            *_, last = train({"model": model}, data, Metric(DEFAULT_METRIC[task], data.task), 0)
            assert np.isfinite(last.score)
            scored += 1
    assert refused <= OURS
    assert scored > 50


@pytest.mark.parametrize(
    ("rows", "groups", "classes", "folds"), [(8, 8, 2, 3), (12, 12, 3, 3), (12, 6, 3, 3), (10, 10, 2, 3), (6, 3, 2, 2)]
)
def test_few_groups_make_fewer_parts(rows: int, groups: int, classes: int, folds: int) -> None:
    number = np.arange(rows)
    patient = number // (rows // groups)
    frame = pd.DataFrame({"a": number * 1.5, "patient": patient.astype(str), "y": number % classes})
    data = divided(BINARY if classes == 2 else MULTICLASS, frame, {"group": "patient"})
    assert len(data.split.folds) == folds
    assert (DataCode.FEWER_FOLDS(folds=folds, wanted=3) in data.notes) is (folds < 3)
    held_out = set(patient[data.split.test])
    assert held_out
    assert not held_out & set(patient[data.split.search])
    for learned, unseen in data.split.folds:
        of_search = patient[data.split.search]
        assert not set(of_search[learned]) & set(of_search[unseen])


@pytest.mark.parametrize(("rows", "folds"), [(3, 2), (4, 3), (10, 3), (11, 5), (57, 4)])
def test_folds_by_time_are_scikit_learns(rows: int, folds: int) -> None:
    from sklearn.model_selection import TimeSeriesSplit

    found = split_rows(
        np.arange(rows + 1.0), classification=False, test_size=1 / (rows + 1), folds=folds, seed=0, kind="time",
        along=np.arange(rows + 1),
    )  # fmt: skip
    expected = TimeSeriesSplit(min(folds, rows - 1)).split(np.arange(rows))
    assert [(a.tolist(), b.tolist()) for a, b in found.folds] == [(a.tolist(), b.tolist()) for a, b in expected]

"""Scores as users read them: an error is a positive number with the name that people write, such as `rmse 13.8`.

Records keep what scikit-learn's scorers give, of which larger is better (`neg_root_mean_squared_error`, -13.8).
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.documents import Json
from tuning.basics.wording import better_text
from tuning.notes import EndCode, Note
from tuning.records.figures import STUDY_FIGURES, TRIAL_FIGURES
from tuning.records.gains import is_error, relative_gains, user_metric
from tuning.records.schema import StudyRecord, TrialRecord

SCORES = {each.name for each in (*STUDY_FIGURES, *TRIAL_FIGURES) if each.better == "metric"}
#: Gains, each with the score that it is a gain over.
GAINS = {"gain": "baseline_test_score", "gain_over_constant": "constant_test_score"}
#: Gains and their errors, which of an error are shown in % of that score.
SHARES = {**GAINS, **{f"{gain}_error": score for gain, score in GAINS.items()}}


def user_mode(metric: str, mode: str) -> str:
    """The better direction of what users read."""
    return "min" if is_error(metric) else mode


def user_score(score: Any, metric: str) -> Any:
    """A recorded score; what is no number stays as it is."""
    return 0.0 - score if isinstance(score, float) and is_error(metric) else score


def user_note(note: Note | None, metric: str) -> Note | None:
    """Return the reason of a scheduler or a rule with its scores as users read them; other notes stay as they are."""
    if note is None or note.code not in _DECISIONS or not is_error(metric):
        return note
    turned = {name: user_score(value, metric) for name, value in note.values.items() if name in _SCORED}
    return replace(note, values={**note.values, **turned})


_DECISIONS = {
    *(EndCode.RUNG_CUTOFF, EndCode.MEDIAN_CUTOFF, EndCode.NOT_AMONG_BEST, EndCode.NOT_AMONG_BEST_OF),
    *(EndCode.STUDY_PLATEAU, EndCode.TRIAL_PLATEAU, EndCode.TARGET_REACHED),
}
_SCORED = {"score", "cutoff", "median", "worst", "best", "target"}


def metric_text(metric: str, mode: str) -> str:
    """A recorded metric and its better direction, as in "rmse, smaller is better"."""
    return better_text(user_metric(metric), user_mode(metric, mode))


def user_table(table: pa.Table, metric: str) -> pa.Table:
    """Columns of study records; a gain over an error is in % of it."""
    if not is_error(metric):
        return table
    found = table
    for place, name in enumerate(table.column_names):
        if name in SCORES:
            found = found.set_column(place, name, pc.subtract(0.0, table[name].cast(pa.float64())))
        if name in SHARES and SHARES[name] in table.column_names:
            found = found.set_column(place, name, percents(table[name], table[SHARES[name]]))
    return found


def percents(gains: pa.ChunkedArray, errors: pa.ChunkedArray) -> pa.Array:
    """Recorded gains in % of the errors over which they are gains."""
    shares = relative_gains(*(np.array(each.to_pylist(), dtype=float) for each in (gains, errors)))
    return pa.array(100 * shares, from_pandas=True)


def user_record(record: StudyRecord | TrialRecord) -> Json:
    """The same of a record, as of `user_row`."""
    row = {each.name: getattr(record, each.name) for each in fields(record)}
    return user_row({**row, "steps": [asdict(step) for step in row["steps"]]} if "steps" in row else row)


def user_row(row: Json) -> Json:
    """The same of one record as plain values, its steps and folds included; reasons and notes stay notes."""
    metric, mode = row["metric"], row["mode"]
    found = {name: user_score(value, metric) if name in SCORES else value for name, value in row.items()}
    found |= {"metric": user_metric(metric), "mode": user_mode(metric, mode)}
    if "reason" in row:
        found["reason"] = user_note(row["reason"], metric)
    if "notes" in row:
        found["notes"] = [user_note(note, metric) for note in row["notes"]]
    if "steps" in row:
        found["steps"] = [{**step, "score": user_score(step["score"], metric)} for step in row["steps"]]
        found["fold_scores"] = [user_score(score, metric) for score in row["fold_scores"]]
    if is_error(metric):
        for name, error in SHARES.items():
            if row.get(name) is not None:
                share = float(relative_gains([row[name]], [row[error]])[0])
                found[name] = 100 * share if share == share else None
    return found

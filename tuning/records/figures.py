"""The figures of a run: the columns of its records, and those that its leaderboard makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from tuning.basics.wording import amount, better_text, score_text
from tuning.records.columns import SHOWN, TABLES, TEXT, Figure, FigureRow, View, figures_of, params_in
from tuning.records.schema import StudyRecord, TrialRecord
from tuning.reporting.cells import paragraph, table

KIND = b"tuning.kind"  # the key in a part's metadata

_MODEL = Figure(
    "model",
    TEXT,
    "the winner's family, or how many trials of which families the ensemble has",
    TABLES,
)
_PARAMS = Figure(
    "params",
    TEXT,
    "the winning configuration as `best_config` gives it, without the model's name; in CSV as JSON",
    ("leaderboard", "terminal", "notebook", "details"),
    essential=True,
    long=True,
    words=params_in,
)
_VERDICT = Figure(
    "verdict",
    TEXT,
    "what to use, by [the hold-out rows](data.md#the-verdict): its `model`, the `baseline`, the `constant`, the "
    "`pool`, or `undecided`; empty without a model or hold-out rows",
    SHOWN,
    essential=True,
)
#: What the leaderboard makes of recorded columns, by the column that it comes after.
COMPUTED = {"reason": (_MODEL, _VERDICT), "predict_ms_per_row": (_PARAMS,)}
RECORDED = figures_of(StudyRecord)
#: Of a study, in the order of the leaderboard.
STUDY_FIGURES = tuple(figure for each in RECORDED for figure in (each, *COMPUTED.get(each.name, ())))


def shown_in(view: View, figures: Iterable[Figure] = STUDY_FIGURES) -> tuple[Figure, ...]:
    """The figures that a view shows, in its order: long texts come last."""
    return tuple(sorted((each for each in figures if view in each.shown), key=lambda each: each.long))


def named(figures: Iterable[Figure]) -> dict[str, Figure]:
    """Figures by name."""
    return {each.name: each for each in figures}


#: Of a trial, those first that are shown of a customer's trials.
TRIAL_FIGURES = figures_of(TrialRecord, named(STUDY_FIGURES))


#: The columns of records' files.
TRIAL_SCHEMA, STUDY_SCHEMA = (
    pa.schema([(each.name, each.type) for each in figures], metadata={KIND: kind})
    for kind, figures in (("trials", TRIAL_FIGURES), ("studies", RECORDED))
)


def brief_names(rows: Iterable[FigureRow]) -> set[str]:
    """The columns that the end of a run and a notebook show: the score on the folds only without one on a hold-out."""
    held_out = any(row["test_score"] is not None for row in rows)
    return {each.name for each in shown_in("notebook")} - ({"cv_score"} if held_out else set())


def notebook_table(rows: Sequence[FigureRow], customers: int, last: int = 0, *, of_objective: bool) -> str:
    """What matters of some rows of a leaderboard, as a notebook shows it.

    customers: how many there are. last: how many of the rows are its last ones. of_objective: with the parameters.
    """
    brief = brief_names(rows)
    shown = [each for each in shown_in("notebook") if each.name in brief and (of_objective or each.name != "params")]
    cells = []
    for row in rows:
        texts = {each.name: each.text(row) for each in shown}
        cells.append([*{**texts, "cv_score": score_text(row["cv_score"], row["cv_error"])}.values()])
    ends = f" and the last {last}" if last else ""
    less = f"The first {len(rows) - last}{ends} of {amount(customers, 'customer')}; leaderboard() has all."
    metric = better_text(str(rows[0]["metric"]), str(rows[0]["mode"])) if rows else ""
    less = less if customers > len(rows) else ""
    return f"{paragraph(metric)}{table([each.name for each in shown], cells)}{paragraph(less)}"

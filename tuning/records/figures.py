"""The figures of a run: every column of its records and of its leaderboard, once, and where each of them is shown.

A figure has one name: in the records' files, leaderboard.csv, the terminal, notebooks, the report, MLflow and the docs.
`figure_tables.py` writes docs/records.md from these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import pyarrow as pa

from tuning.basics.wording import amount, better_text, gain_text, params_text, score_text, value_text
from tuning.records.gains import ERRORS
from tuning.reporting.cells import paragraph, table

#: leaderboard: CSV, JSON and DataFrame. terminal, notebook: the table of customers there. customer: what a notebook and
#: `tuning show` tell of one customer. report: the table in report.html; details: what opens below a row of it.
#: mlflow: the table and the medians in the summary; mlflow_model: the metrics of a model that is logged there.
View: TypeAlias = Literal[
    "leaderboard", "terminal", "notebook", "customer", "report", "details", "mlflow", "mlflow_model"
]
#: metric: as the run's `mode` has it. None: neither way.
Better: TypeAlias = Literal["metric", "larger", "smaller"] | None
#: Values of one customer's figures by name; `params` is a mapping.
FigureRow: TypeAlias = Mapping[str, object]

TEXT, FLOAT, INT, SHORT = pa.string(), pa.float64(), pa.int64(), pa.int32()
_MAP = pa.map_(TEXT, FLOAT)
_STEP = pa.struct([("step", SHORT), ("score", FLOAT), ("seconds", FLOAT), ("metrics", _MAP)])
_MOMENT = pa.timestamp("us", tz="UTC")

EVERYWHERE: tuple[View, ...] = ("leaderboard", "terminal", "notebook", "customer", "report", "mlflow", "mlflow_model")
TABLES: tuple[View, ...] = ("leaderboard", "terminal", "notebook", "report", "mlflow")


@dataclass(frozen=True)
class Figure:
    """One column of the records or of the leaderboard.

    Attributes:
        name: its only name, which is also the heading of its column wherever it is shown.
        type: its type in a file.
        what: its meaning, for docs/records.md.
        shown: where, beside the records. In MLflow every recorded number is a metric of its study's run, every text a
            tag, wherever else it is shown.
        better: which values are better.
        essential: whether a narrow page keeps it.
        spared: when a narrow terminal does without it: 1 is first, 0 never.
        long: whether its texts are long: tables show it last.
        clock: whether a clock decides it, so that two runs of the same search differ in it.
        recorded: whether study or trial records have it; else the leaderboard makes it of others.
        words: how a row's value is written; by default rounded.
    """

    name: str
    type: pa.DataType
    what: str
    shown: tuple[View, ...] = ()
    better: Better = None
    essential: bool = False
    spared: int = 1
    long: bool = False
    clock: bool = False
    recorded: bool = True
    words: Callable[[FigureRow], str] | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is an amount or a score; an ordinal number, which is a `SHORT`, is neither, nor is a seed."""
        return self.type in (FLOAT, INT) and "seed" not in self.name

    def larger_first(self, mode: str) -> bool:
        """Whether a table that is sorted by it begins with its largest value: better values come first, larger ones
        where neither is better. mode: the metric's better direction."""
        return self.better != "smaller" and (self.better != "metric" or mode == "max")

    def text(self, row: FigureRow) -> str:
        """A row's value as tables show it."""
        return value_text(row[self.name]) if self.words is None else self.words(row)


def _gain(name: str) -> Callable[[FigureRow], str]:
    return lambda row: gain_text(row[name], row["metric"] in ERRORS)


def _params(row: FigureRow) -> str:
    return params_text(row["params"]) if isinstance(row["params"], Mapping) else ""


#: Of a study, in the order of the leaderboard; what this does not have comes last.
STUDY_FIGURES = (
    Figure("customer", TEXT, "the customer's id", TABLES, essential=True, spared=0),
    Figure(
        "status",
        TEXT,
        "`ok`, `pool` (no model of its own, the [pool](models.md#the-pool) answers), `no_model`, `quarantined`; on the "
        "leaderboard also `running`, "
        "and `unfinished` of a run that has stopped",
        ("leaderboard", "terminal", "report"),
        spared=0,
    ),
    Figure("reason", TEXT, "why there is no model; empty when ok", TABLES, essential=True, long=True),
    Figure(
        "model",
        TEXT,
        "the winner's family, or how many trials of which families the ensemble has",
        TABLES,
        recorded=False,
        spared=0,
    ),
    Figure("metric", TEXT, "name of the metric", ("leaderboard",)),
    Figure("mode", TEXT, "`max` or `min`: whether a larger or a smaller score is better", ("leaderboard",)),
    Figure("positive", TEXT, "the positive class of a binary task; empty for other tasks", ("leaderboard", "details")),
    Figure(
        "cv_score",
        FLOAT,
        "cross-validation score of the winner, the mean over the folds",
        (*TABLES, "mlflow_model"),
        better="metric",
        essential=True,
        spared=4,
    ),
    Figure("cv_error", FLOAT, "standard error of `cv_score` over the folds", ("leaderboard", "details")),
    Figure(
        "test_score",
        FLOAT,
        "score on the hold-out rows of the model (the winner, or the ensemble), refitted on the search rows",
        EVERYWHERE,
        better="metric",
        essential=True,
        words=lambda row: score_text(row["test_score"], row.get("test_error")),
        spared=0,
    ),
    Figure(
        "test_error",
        FLOAT,
        "standard error of `test_score` over the hold-out rows, by a jackknife that leaves out a twentieth of them at "
        "a time; empty with fewer than 20 rows, of a constant, and of a metric of your own",
        ("leaderboard", "details", "mlflow_model"),
    ),
    Figure(
        "held_back",
        INT,
        "hold-out rows for which the model, or a member of the ensemble, went beyond `bounds` and was held there; "
        "empty without bounds",
        ("leaderboard", "customer", "details"),
        better="smaller",
        words=lambda row: value_text(row.get("held_back") or None),
    ),
    Figure(
        "baseline",
        TEXT,
        "the [baseline](data.md#the-baseline): the family of trial 0 (empty when that trial did not finish), or what "
        "`baseline` names",
        ("leaderboard", "terminal", "customer", "details"),
    ),
    Figure(
        "baseline_test_score",
        FLOAT,
        "the baseline's score on the hold-out rows; a model is refitted on the search rows for it",
        ("leaderboard", "terminal", "customer", "report", "mlflow", "mlflow_model"),
        better="metric",
        spared=3,
    ),
    Figure(
        "gain",
        FLOAT,
        "`test_score` minus `baseline_test_score`, positive when the model is better in either mode; where it is "
        "shown, that of an error is in % of the [baseline's](data.md#how-scores-are-made)",
        (*TABLES, "mlflow_model"),
        better="larger",
        essential=True,
        words=_gain("gain"),
        spared=0,
    ),
    Figure(
        "gain_error",
        FLOAT,
        "standard error of `gain` in the same unit, over the same rows as `test_error`: of the differences of both "
        "models; 0 where the baseline is the model",
        ("leaderboard", "details", "mlflow_model"),
    ),
    Figure(
        "constant_test_score",
        FLOAT,
        "the constant's score on the hold-out rows, fitted on the search rows",
        ("leaderboard", "customer", "mlflow_model"),
        better="metric",
    ),
    Figure(
        "gain_over_constant",
        FLOAT,
        "the same over `constant_test_score`",
        ("leaderboard", "details", "mlflow_model"),
        better="larger",
        words=_gain("gain_over_constant"),
    ),
    Figure("trials", INT, "recorded trials", ("leaderboard", "terminal", "details"), spared=2),
    Figure(
        "seconds",
        FLOAT,
        "wall seconds of its last attempt; spread, of its trials and its final fits together",
        ("leaderboard", "report"),
        clock=True,
    ),
    Figure(
        "refit_seconds",
        FLOAT,
        "wall seconds in which the model (the winner, or all members of the ensemble) was fitted on the search rows; "
        "empty where a constant is the model, and of an objective",
        ("leaderboard", "customer", "details", "mlflow_model"),
        better="smaller",
        clock=True,
    ),
    Figure(
        "predict_ms_per_row",
        FLOAT,
        "wall milliseconds per row in which that model predicted the encoded hold-out rows",
        ("leaderboard", "customer", "details", "mlflow_model"),
        better="smaller",
        clock=True,
    ),
    Figure(
        "params",
        TEXT,
        "the winning configuration as `best_config` gives it, without the model's name; in CSV as JSON",
        ("leaderboard", "terminal", "notebook", "details"),
        essential=True,
        long=True,
        recorded=False,
        words=_params,
    ),
    Figure(
        "notes",
        TEXT,
        "remarks: the rule or limit that ended the study early, a refit along a schedule, …",
        ("leaderboard", "notebook", "details"),
        long=True,
    ),
    Figure("model_path", TEXT, "folder of the model in the run, or in a pack: `models/….zip/acme`", ("leaderboard",)),
    Figure("run", TEXT, "the run's name, that of its folder"),
    Figure(
        "study",
        TEXT,
        "the study's id; the customer's id in a per-customer search; `/pool` of the [pool](models.md#the-pool)",
    ),
    Figure("algorithm", TEXT, "the search algorithm"),
    Figure("scheduler", TEXT, "the scheduler"),
    Figure("study_seed", INT, "seed of the study's algorithm and scheduler"),
    Figure("task", TEXT, "`regression`, `binary`, `multiclass` or `objective`"),
    Figure(
        "family",
        TEXT,
        "of the winner; `constant` where no trial was better than a constant on the folds, `pool` where it answers",
    ),
    Figure("trial", SHORT, "number of the winning trial; empty where a constant won"),
    Figure("best_step", SHORT, "its step that counts; the winner is refitted to it"),
    Figure(
        "config",
        TEXT,
        "its configuration as JSON; for a population-based trial the last one (the trial's record has the schedule)",
    ),
    Figure("baseline_cv_score", FLOAT, "the baseline's cross-validation score", ("mlflow_model",), better="metric"),
    Figure("stopped", INT, "trials stopped early"),
    Figure("failed", INT, "trials failed"),
    Figure("rows", INT, "rows with a target"),
    Figure("test_rows", INT, "rows held out"),
    Figure("features", INT, "used columns"),
    Figure("started", _MOMENT, "when the study began (its last attempt)", clock=True),
    Figure("fit_seconds", FLOAT, "CPU seconds; of what, as `seconds`", clock=True),
    Figure("model_sha256", TEXT, "digest of its `model.json`, which holds the digests of the other files"),
    Figure("worker", TEXT, "host:pid"),
    Figure("versions", TEXT, "of Python and the libraries that the result depends on"),
    Figure("error", TEXT, "traceback, when something unforeseen ended the study"),
    Figure(
        "ensemble",
        TEXT,
        "the members of the ensemble that the model is, as JSON: a list of `{trial, family, weight}`, the weights "
        "adding up to 1; without a trial the run's pool; empty where the model is the winner alone",
    ),
    Figure(
        "ensemble_score",
        FLOAT,
        "cross-validation score of the ensemble: its mean predictions scored fold by fold, as a trial is",
        ("mlflow_model",),
        better="metric",
    ),
    Figure(
        "constant_cv_score",
        FLOAT,
        "what knowing nothing scores on the folds: a constant of each fold's training rows (the mean or the median, "
        "whichever the metric prefers, or the shares of the classes); empty where the metric is not defined for it",
        ("mlflow_model",),
        better="metric",
    ),
    Figure("model_bytes", INT, "size of the model's files"),
    Figure(
        "final_fit",
        TEXT,
        "which rows the saved model was fitted on: `all`, or those of the `search`; empty without a model",
    ),
)

_OF_BOTH = ("run", "study", "customer", "algorithm", "scheduler", "metric", "mode", "study_seed", "worker", "versions")

#: Of a trial, those first that are shown of a customer's trials.
TRIAL_FIGURES = (
    Figure("trial", SHORT, "number in the study, from 0; 0 is the baseline", ("customer",)),
    Figure("family", TEXT, "the model family; trials are compared on rungs within one family", ("customer",)),
    Figure(
        "state",
        TEXT,
        "`finished` (a full trial: at its last step or on its plateau), `stopped` (by the scheduler or a rule), "
        "`failed`",
        ("customer",),
    ),
    Figure("score", FLOAT, "score at `best_step`, the mean over folds", ("customer",), better="metric"),
    Figure("steps", pa.list_(_STEP), "every step reported; seconds since the trial started", ("customer",)),
    Figure(
        "config",
        TEXT,
        "the configuration as JSON, keys sorted; only parameters that exist in it",
        ("customer",),
        long=True,
    ),
    Figure("reason", TEXT, "why it was stopped or failed; empty when finished", ("customer",), long=True),
    Figure("attempt", SHORT, "the attempt that is recorded, from 1; higher after a worker died in this trial"),
    Figure("suggested", SHORT, "position of the suggestion in the study's sequence of suggest and tell"),
    Figure("told", SHORT, "position at which the algorithm was told the result"),
    Figure(
        "best_step",
        SHORT,
        "the step that counts: the best one of a model that grows (by rounds, trees or passes), else the last one",
    ),
    Figure("fold_scores", pa.list_(FLOAT), "the score of each fold at `best_step`"),
    Figure("metrics", _MAP, "other figures at `best_step`"),
    Figure("seed", INT, "seed of this trial's training"),
    Figure("started", _MOMENT, "when it started", clock=True),
    Figure("seconds", FLOAT, "wall seconds", clock=True),
    Figure("fit_seconds", FLOAT, "CPU seconds of the training and scoring", clock=True),
    Figure("suggest_seconds", FLOAT, "wall seconds of the algorithm's suggestion", clock=True),
    Figure("error", TEXT, "traceback of a failed trial"),
    Figure("lineage", TEXT, "JSON: the donors of a population-based trial"),
    Figure("schedule", TEXT, "JSON: hyperparameters by step, when they changed during the trial"),
    Figure(
        "spent_steps",
        INT,
        "steps that the study had trained when this trial ended: of all its trials, those that go on and those given "
        "up for another trial's model included",
    ),
    Figure(
        "spent_seconds", FLOAT, "seconds of training and of the algorithm that the study had spent by then", clock=True
    ),
    *(replace(each, shown=()) for each in STUDY_FIGURES if each.name in _OF_BOTH),
)


def shown_in(view: View, figures: Iterable[Figure] = STUDY_FIGURES) -> tuple[Figure, ...]:
    """The figures that a view shows, in its order: long texts come last."""
    return tuple(sorted((each for each in figures if view in each.shown), key=lambda each: each.long))


def named(figures: Iterable[Figure]) -> dict[str, Figure]:
    """Figures by name."""
    return {each.name: each for each in figures}


def notebook_table(rows: Sequence[FigureRow], customers: int, last: int = 0, *, of_objective: bool) -> str:
    """What matters of some rows of a leaderboard, as a notebook shows it.

    customers: how many there are. last: how many of the rows are its last ones. of_objective: with the parameters.
    """
    shown = [each for each in shown_in("notebook") if of_objective or each.name != "params"]
    cells = []
    for row in rows:
        texts = {each.name: each.text(row) for each in shown}
        cells.append([*{**texts, "cv_score": score_text(row["cv_score"], row["cv_error"])}.values()])
    ends = f" and the last {last}" if last else ""
    less = f"The first {len(rows) - last}{ends} of {amount(customers, 'customer')}; leaderboard() has all."
    metric = better_text(str(rows[0]["metric"]), str(rows[0]["mode"])) if rows else ""
    less = less if customers > len(rows) else ""
    return f"{paragraph(metric)}{table([each.name for each in shown], cells)}{paragraph(less)}"

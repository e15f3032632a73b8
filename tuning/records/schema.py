"""The records: the permanent rows about trials and studies.

A run's truth is a set of immutable Parquet parts. `TrialRecord` is one row about one trial, `StudyRecord` one row about
one study (written after all of its trials). Reading drops duplicates by key: (study, trial) and (study). A field of a
record is a column of its files, of the leaderboard and of all that is shown: it is declared here, once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields

from schedulers.direction import loss_of
from tuning.basics.documents import Config as Config
from tuning.basics.documents import Json
from tuning.basics.wording import score_text
from tuning.notes import Note
from tuning.records.columns import (
    EVERYWHERE,
    FLOATS,
    HELD_OUT,
    MAP,
    MOMENT,
    NOTES,
    SHORT,
    SHOWN,
    STEPS,
    TABLES,
    TEXT,
    as_of_study,
    column,
    gain_in,
    optional,
    rows_in,
)

FINISHED, STOPPED, FAILED = "finished", "stopped", "failed"
TRIAL_STATES = (FINISHED, STOPPED, FAILED)
OK, NO_MODEL, QUARANTINED = "ok", "no_model", "quarantined"
POOLED = "pool"  # of a customer without a model of its own, whom the run's pool answers
POOL_STUDY = "/pool"  # in place of a study's id: of the trial that the run's pool is
RUNNING, UNFINISHED = "running", "unfinished"  # of a customer without an ended study, on the leaderboard

MODEL = "model"  # the hyperparameter that names the model family


#: Our names among the figures of a user's objective, in MLflow and in the logs of Ray Tune.
OURS = {"score", "fit_seconds", "trials", "training_iteration", "trial_id", "config", "done", "timestamp"}
OURS |= {"time_this_iter_s", "time_total_s"}


def user_name(name: str, taken: Container[str] = OURS) -> str:
    """Return the name of a user's figure or parameter among ours: a taken name gets the prefix `user.`."""
    return f"user.{name}" if name in taken or name.startswith(("user.", "hp.")) else name


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a trial: its number (from 1), score, wall seconds since the trial began, further figures."""

    step: int
    score: float
    seconds: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """One trial, recorded exactly once. Key: (study, trial)."""

    trial: int = column("number in the study, from 0; 0 is the baseline", ("customer",), type=SHORT)
    family: str = column("the model family; trials are compared on rungs within one family", ("customer",))
    state: str = column(
        "`finished` (a full trial: at its last step or on its plateau), `stopped` (by the scheduler or a rule), "
        "`failed`",
        ("customer",),
    )
    score: float | None = optional("score at `best_step`, the mean over folds", ("customer",), better="metric")
    steps: Sequence[StepRecord] = column(
        "every step reported; seconds since the trial started", ("customer",), type=STEPS
    )
    config: Config = column(
        "the configuration as JSON, keys sorted; only parameters that exist in it", ("customer",), type=TEXT, long=True
    )
    reason: Note | None = column("why it was stopped or failed; empty when finished", ("customer",), long=True)
    attempt: int = column("the attempt that is recorded, from 1; higher after a worker died in this trial", type=SHORT)
    suggested: int = column("position of the suggestion in the study's sequence of suggest and tell", type=SHORT)
    told: int = column("position at which the algorithm was told the result", type=SHORT)
    best_step: int | None = optional(
        "the step that counts: the best one of a model that grows (by rounds, trees or passes), else the last one",
        type=SHORT,
    )
    fold_scores: Sequence[float] = column("the score of each fold at `best_step`", type=FLOATS)
    metrics: Mapping[str, float] = column("other figures at `best_step`", type=MAP)
    seed: int = column("seed of this trial's training")
    started: float = column("when it started", type=MOMENT, clock=True)
    seconds: float = column("wall seconds", clock=True)
    fit_seconds: float = column("CPU seconds of the training and scoring", clock=True)
    suggest_seconds: float = column("wall seconds of the algorithm's suggestion", clock=True)
    error: str | None = optional("traceback of a failed trial")
    lineage: str | None = optional("JSON: the donors of a population-based trial")
    schedule: str | None = optional("JSON: hyperparameters by step, when they changed during the trial")
    spent_steps: int | None = optional(
        "steps that the study had trained when this trial ended: of all its trials, those that go on and those "
        "given up for another trial's model included"
    )
    spent_seconds: float | None = optional(
        "seconds of training and of the algorithm that the study had spent by then", clock=True
    )
    customer: str = as_of_study()
    metric: str = as_of_study()
    mode: str = as_of_study()
    run: str = as_of_study()
    study: str = as_of_study()
    algorithm: str = as_of_study()
    scheduler: str = as_of_study()
    study_seed: int = as_of_study()
    worker: str = as_of_study()
    versions: str = as_of_study()

    @property
    def key(self) -> tuple[str, int]:
        return (self.study, self.trial)

    def reported(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Further figures of the trial or of a step, by names that neither the metric nor a figure of ours has."""
        return {user_name(name, OURS | {self.metric}): value for name, value in metrics.items()}

    @property
    def shown_metric(self) -> str:
        """The metric's name beside figures of ours; `score` means the same."""
        return user_name(self.metric, OURS - {"score"})

    @property
    def changes(self) -> list[tuple[int, Config]]:
        """(steps before, configuration) of a trial whose configuration changed while it trained, in order."""
        return [(before, config) for before, config in json.loads(self.schedule or "[]")]

    @property
    def stages(self) -> list[tuple[int, Config]]:
        """(first step, configuration) of each stretch of training on the way to the model; mostly there is one."""
        begins, last = self.changes or [(0, self.config)], self.best_step or len(self.steps)
        ends = [*(before for before, _ in begins[1:]), last]
        return [
            (before + 1, config) for (before, config), end in zip(begins, ends, strict=True) if before < min(end, last)
        ]

    @property
    def changing(self) -> list[tuple[int, Config]]:
        """The stages, where there are several, with those values alone that differ between them."""
        configs = [config for _, config in self.stages]
        names = [name for name in self.config if len({canonical({name: each.get(name)}) for each in configs}) > 1]
        return [(first, {name: config.get(name) for name in names}) for first, config in self.stages if names]

    @property
    def loss(self) -> float:
        """The score, turned so that smaller is better; infinite where there is none."""
        if self.score is None:
            return math.inf
        return loss_of(self.score, self.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRecord:
    """What came of one study, recorded once, after its trials. Key: (study,)."""

    customer: str = column("the customer's id", TABLES, essential=True)
    status: str = column(
        "`ok`, `pool` (no model of its own, the [pool](models.md#the-pool) answers), `no_model`, `quarantined`; on "
        "the leaderboard also `running`, and `unfinished` of a run that has stopped",
        ("leaderboard", "report"),
    )
    reason: Note | None = column("why there is no model; empty when ok", TABLES, essential=True, long=True)
    metric: str = column("name of the metric", ("leaderboard",))
    mode: str = column("`max` or `min`: whether a larger or a smaller score is better", ("leaderboard",))
    positive: str | None = optional(
        "the positive class of a binary task; empty for other tasks", ("leaderboard", "details")
    )
    rows: int = column("rows with a target", SHOWN, words=rows_in("rows"))
    without_target: int | None = optional(
        "rows left out because their target is missing, or no number where one is needed; empty where there are none",
        ("leaderboard", "terminal", "customer", "details"),
    )
    test_rows: int = column("rows held out", HELD_OUT, essential=True, words=rows_in("test_rows"))
    rare_rows: int | None = optional(
        "rows held out of the rarest class; empty of a regression", HELD_OUT, essential=True
    )
    cv_score: float | None = optional(
        "cross-validation score of the winner, the mean over the folds",
        (*TABLES, "mlflow_model"),
        better="metric",
        essential=True,
    )
    cv_error: float | None = optional("standard error of `cv_score` over the folds", ("leaderboard", "details"))
    test_score: float | None = optional(
        "score on the hold-out rows of the model (the winner, or the ensemble), refitted on the search rows",
        EVERYWHERE,
        better="metric",
        essential=True,
        words=lambda row: score_text(row["test_score"], row.get("test_error")),
    )
    test_error: float | None = optional(
        "standard error of `test_score` over the hold-out rows, by a jackknife that leaves out a twentieth of them "
        "at a time; empty with fewer than 20 rows, and of a constant",
        ("leaderboard", "details", "mlflow_model"),
    )
    held_back: int | None = optional(
        "hold-out rows for which the model, or a member of the ensemble, went beyond `bounds` and was held there; "
        "empty without bounds",
        ("leaderboard", "customer", "details"),
        better="smaller",
    )
    own_score: float | None = optional(
        "hold-out score of the model's own members without the pool; empty where it has none, and without a pool",
        ("leaderboard", "details"),
        better="metric",
    )
    pool_score: float | None = optional(
        "hold-out score of the [pool](models.md#the-pool) alone",
        ("leaderboard", "details"),
        better="metric",
    )
    baseline: str | None = optional(
        "the [baseline](data.md#the-baseline): the family of trial 0 (empty when that trial did not finish), or "
        "what `baseline` names",
        ("leaderboard", "customer", "details"),
    )
    baseline_test_score: float | None = optional(
        "the baseline's score on the hold-out rows; a model is refitted on the search rows for it",
        ("leaderboard", "terminal", "customer", "report", "mlflow", "mlflow_model"),
        better="metric",
    )
    gain: float | None = optional(
        "how much better `test_score` is than `baseline_test_score`, below 0 where it is worse; of an error in % of "
        "the [baseline's](data.md#how-scores-are-made)",
        (*TABLES, "mlflow_model"),
        better="larger",
        essential=True,
        words=gain_in("gain"),
    )
    gain_error: float | None = optional(
        "standard error of `gain` in the same unit, over the same rows as `test_error`: of the differences of both "
        "models; 0 where the baseline is the model",
        ("leaderboard", "details", "mlflow_model"),
    )
    constant_test_score: float | None = optional(
        "the constant's score on the hold-out rows, fitted on the search rows",
        ("leaderboard", "customer", "mlflow_model"),
        better="metric",
    )
    gain_over_constant: float | None = optional(
        "the same over `constant_test_score`",
        ("leaderboard", "details", "mlflow_model"),
        better="larger",
        words=gain_in("gain_over_constant"),
    )
    gain_over_constant_error: float | None = optional(
        "standard error of `gain_over_constant`, as `gain_error` is; 0 where the constant is the model",
        ("leaderboard", "details", "mlflow_model"),
    )
    trials: int = column("recorded trials", ("leaderboard", "details"))
    seconds: float = column(
        "wall seconds of its last attempt; spread, of its trials and its final fits together",
        ("leaderboard", "report"),
        clock=True,
    )
    refit_seconds: float | None = optional(
        "wall seconds in which the model (the winner, or all members of the ensemble) was fitted on the search "
        "rows; empty where a constant is the model, and of an objective",
        ("leaderboard", "customer", "details", "mlflow_model"),
        better="smaller",
        clock=True,
    )
    predict_ms_per_row: float | None = optional(
        "wall milliseconds per row in which that model predicted the encoded hold-out rows",
        ("leaderboard", "customer", "details", "mlflow_model"),
        better="smaller",
        clock=True,
    )
    notes: Sequence[Note] = optional(
        "remarks: the rule or limit that ended the study early, a refit along a schedule, …",
        ("leaderboard", "details"),
        type=NOTES,
        default=(),
        long=True,
    )
    model_path: str | None = optional(
        "folder of the model in the run, or in a pack: `models/….zip/acme`", ("leaderboard",)
    )
    run: str = column("the run's name, that of its folder")
    study: str = column(
        "the study's id; the customer's id in a per-customer search; `/pool` of the [pool](models.md#the-pool)"
    )
    algorithm: str = column("the search algorithm")
    scheduler: str = column("the scheduler")
    study_seed: int = column("seed of the study's algorithm and scheduler")
    task: str = column("`regression`, `binary`, `multiclass` or `objective`")
    family: str | None = optional(
        "of the winner; `constant` where no trial was better than a constant on the folds, `pool` where it answers"
    )
    trial: int | None = optional("number of the winning trial; empty where a constant won", type=SHORT)
    best_step: int | None = optional("its step that counts; the winner is refitted to it", type=SHORT)
    config: Config | None = optional(
        "its configuration as JSON; for a population-based trial the last one (the trial's record has the schedule)",
        type=TEXT,
    )
    stages: int | None = optional(
        "stages of its training, between which its configuration changed (population-based training); empty where it "
        "never did",
        ("leaderboard", "details"),
    )
    baseline_cv_score: float | None = optional(
        "the baseline's cross-validation score", ("mlflow_model",), better="metric"
    )
    stopped: int = column("trials stopped early")
    failed: int = column("trials failed")
    features: int = column("used columns")
    started: float = column("when the study began (its last attempt)", type=MOMENT, clock=True)
    fit_seconds: float = column("CPU seconds; of what, as `seconds`", clock=True)
    model_sha256: str | None = optional("digest of its `model.json`, which holds the digests of the other files")
    worker: str = column("host:pid")
    versions: str = column("of Python and the libraries that the result depends on, as a JSON object of them by name")
    error: str | None = optional("traceback, when something unforeseen ended the study")
    ensemble: str | None = optional(
        "the members of the ensemble that the model is, as JSON: a list of `{trial, family, weight}`, the weights "
        "adding up to 1; without a trial the run's pool; empty where the model is the winner alone"
    )
    ensemble_score: float | None = optional(
        "cross-validation score of the ensemble: its mean predictions scored fold by fold, as a trial is",
        ("mlflow_model",),
        better="metric",
    )
    constant_cv_score: float | None = optional(
        "what knowing nothing scores on the folds: a constant of each fold's training rows (the mean or the median, "
        "whichever the metric prefers, or the shares of the classes); empty where the metric is not defined for it",
        ("mlflow_model",),
        better="metric",
    )
    model_bytes: int | None = optional("size of the model's files")
    final_fit: str | None = optional(
        "which rows the saved model was fitted on: `all`, or those of the `search`; empty without a model"
    )

    @property
    def key(self) -> tuple[str]:
        return (self.study,)


Record = TrialRecord | StudyRecord


def as_row(record: Record) -> Json:
    """Return a record's columns by name, its steps as plain values; notes stay notes."""
    row = {each.name: getattr(record, each.name) for each in fields(record)}
    return {**row, "steps": [asdict(step) for step in row["steps"]]} if "steps" in row else row


def best_first(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The full trials of one study by their scores, the best first; of equal ones the earliest. Others are left out."""
    full = [trial for trial in trials if trial.state == FINISHED and trial.score is not None]
    return sorted(full, key=lambda trial: (trial.loss, trial.trial))


def canonical(config: Config) -> str:
    """A configuration as text: the same configuration is always the same text."""
    return _CANONICAL(config)


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode

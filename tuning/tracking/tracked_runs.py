"""Records as MLflow runs: what a customer's parent run and a trial's child run hold."""

from __future__ import annotations

import getpass
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache

from tuning.notes import texts
from tuning.notes.note import plain
from tuning.records.figures import RECORDED
from tuning.records.schema import FAILED, FINISHED, MODEL, OK, STOPPED, StudyRecord, TrialRecord, canonical, user_name
from tuning.storage.names import mask_in
from tuning.tracking import mlflow_names
from tuning.tracking.mlflow_names import TrackedSearch, trial_of

RUNNING = "RUNNING"
STATUS = {FINISHED: "FINISHED", STOPPED: "KILLED", FAILED: "FAILED"}

SUMMARY, STUDY, TRIAL, POOLED = "summary", "study", "trial", "pool"

PREFIX = "tuning."
KEY_TAG = f"{PREFIX}key"
RUN_TAG = f"{PREFIX}run"
SEARCH_TAG = f"{PREFIX}search"  # the key of the search, where a run is looked for by it
KIND_TAG = f"{PREFIX}kind"
STUDY_TAG = f"{PREFIX}study"
CUSTOMER_TAG = f"{PREFIX}customer"
BEST_TAG = f"{PREFIX}best"
FAMILY = "family"  # our param with a model's kind; a search space has its own, `MODEL`
PARENT_TAG = "mlflow.parentRunId"
NAME_TAG = "mlflow.runName"
USER_TAG = "mlflow.user"
NOTE_TAG = "mlflow.note.content"

TRIALS = "trials"  # the metric that says how far a study has come
#: Metrics of a study's run. All other columns of its record are tags.
STUDY_METRICS = tuple(each.name for each in RECORDED if each.is_number)
_NOT_TEXT = {*STUDY_METRICS, "run", "config", "started", "customer", "study"}
_STUDY_TEXT = tuple(each.name for each in RECORDED if each.name not in _NOT_TEXT)
_TRIAL_TEXT = ("algorithm", "scheduler", "seed", "reason", "error", "lineage", "schedule")
#: The only ones where there are very many studies.
SHORT_METRICS = (*(each.name for each in RECORDED if each.is_number and each.essential and each.better), TRIALS)

NO_MODEL_NOTE = "No model: "


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """One MLflow run, ready to be written.

    key: our id (`TrackedSearch.id`): the run's id where we may choose it, else the tag `tuning.key`.
    parent: the parent's key.
    status: MLflow's; RUNNING for the run of a study that has no record yet.
    start, end: milliseconds since 1970.
    short: its figures have one value each, so a database needs no history of them.
    children: keys of the only trials of a study that are to have runs; None where all are.
    """

    key: str
    parent: str | None
    kind: str
    name: str
    status: str
    start: int
    end: int | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[mlflow_names.MetricPoint, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    short: bool = False
    children: frozenset[str] | None = None

    @property
    def trials(self) -> float:
        """How many trials a study's run stands for; 0 for other runs."""
        return next((value for key, value, *_ in self.metrics if key == TRIALS), 0.0)


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run that is in MLflow; everything is in it when its status is a final one.

    run_id: MLflow's. trials: of a study. end: milliseconds since 1970.
    """

    run_id: str
    status: str
    trials: float = 0.0
    end: int | None = None


@dataclass(frozen=True, slots=True)
class RecordRuns:
    """The runs of a search's records.

    Attributes:
        search: What their ids are derived from.
        short: With what somebody looks for among a million of them, and no more. A figure takes about 440 bytes of
            SQLite with its history and 175 without, a tag 200: a full run has 20 of each.
    """

    search: TrackedSearch
    short: bool = False

    def of_trial(self, record: TrialRecord) -> TrackedRun:
        """Return a trial's child run."""
        start, config = _milliseconds(record.started), record.config
        end = start + max(0, int(record.seconds * 1000))
        if self.short:
            config = {name: value for name, value in config.items() if (name, value) != (MODEL, record.family)}
            figures = [] if record.score is None else [("score", record.score, _counted_step(record), end)]
        else:
            figures = list(_trial_metrics(record, start, end))
        tags = {CUSTOMER_TAG: record.customer, **({} if self.short else _texts(record, _TRIAL_TEXT))}
        if record.study != record.customer and not self.short:
            tags[STUDY_TAG] = record.study
        return replace(
            self._run(TRIAL, self.search.id(record.study, record.trial), _trial_name(record), start, tags),
            parent=self.search.id(record.study),
            status=STATUS.get(record.state, "FAILED"),
            end=end,
            params=params_of(config, None if self.short else record.family),
            metrics=tuple(figures),
        )

    def of_pool(self, record: TrialRecord) -> TrackedRun:
        """Return the run of the pool, which is a trial of no study."""
        trial = self.of_trial(record)
        run = self._run(POOLED, trial.key, POOLED, trial.start, {} if self.short else _texts(record, _TRIAL_TEXT))
        return replace(run, status=trial.status, end=trial.end, params=trial.params, metrics=trial.metrics)

    def of_study(self, record: StudyRecord) -> TrackedRun:
        """Return a customer's parent run: the winner, its scores, the counts and the leaderboard row."""
        end, ok = ended(record), record.status == OK
        tags = _texts(record, ("reason",) if self.short else _STUDY_TEXT)
        if not ok:
            tags[NOTE_TAG] = f"{NO_MODEL_NOTE}{record.reason}"
        if not self.short:
            tags[f"{PREFIX}leaderboard"] = canonical(_plain(record))
            if record.trial is not None:
                tags[f"{PREFIX}best_run"] = self.search.id(record.study, record.trial)
        figures = {name: getattr(record, name) for name in (SHORT_METRICS if self.short else STUDY_METRICS)}
        return replace(
            self.of_open_study(record, tags),
            status="FINISHED" if ok else "FAILED",
            end=end,
            params=params_of({} if self.short else record.config or {}, record.family),
            metrics=tuple((name, float(value), 0, end) for name, value in figures.items() if value is not None),
        )

    def of_open_study(self, record: StudyRecord | TrialRecord, tags: Mapping[str, str] | None = None) -> TrackedRun:
        """Return the parent run of a study without its own record, so far.

        record: of one of its first trials. tags: in place of those that a trial knows of its study.
        """
        if tags is None:
            tags = {} if self.short else _texts(record, ("algorithm", "scheduler"))
        tags = {CUSTOMER_TAG: record.customer, **tags}
        if not self.short or record.study != record.customer:
            tags[STUDY_TAG] = record.study
        key, start = self.search.id(record.study), _milliseconds(record.started)
        return self._run(STUDY, key, _study_name(record), start, tags)

    def of_summary(
        self, status: str, started: float, ended: float, metrics: Mapping[str, float], tags: Mapping[str, str]
    ) -> TrackedRun:
        """Return the run that sums up the search. started, ended: seconds since 1970."""
        name, end = mlflow_names.text(self.search.run, mlflow_names.KEY_LIMIT), _milliseconds(ended)
        names = mlflow_names.keys(metrics)
        figures = tuple((names[key], float(value), 0, end) for key, value in metrics.items())
        run = self._run(SUMMARY, self.search.id(), name, _milliseconds(started), tags)
        return replace(run, status=STATUS[status], end=end, metrics=figures)

    def _run(self, kind: str, key: str, name: str, start: int, tags: Mapping[str, str]) -> TrackedRun:
        """A run with its tags, and those by which it is found; where there are very many, trials have none of these."""
        found = {} if kind == TRIAL else {KIND_TAG: kind}
        if not (self.short and kind == TRIAL):
            found[RUN_TAG] = self.search.run
        if not self.short:
            found[NAME_TAG] = name
        if not (self.short or kind == TRIAL):
            found |= {USER_TAG: user(), SEARCH_TAG: self.search.id()}
        return TrackedRun(key, None, kind, name, RUNNING, start, tags=_tags({**found, **tags}), short=self.short)


def params_of(config: Mapping[str, object], family: str | None = None) -> dict[str, str]:
    """A configuration and its model family as MLflow params; a user's own parameter `family` becomes `user.family`."""
    own = {user_name(name, (FAMILY,)): value for name, value in config.items()}
    return mlflow_names.params({FAMILY: family, **own} if family else own)


def ended(record: StudyRecord) -> int:
    """When a study ended, in milliseconds since 1970; of several records of one study the latest counts."""
    return _milliseconds(record.started) + max(0, int(record.seconds * 1000))


def replaces(new: TrackedRun, known: KnownRun) -> bool:
    """Whether a run must be written although one with its key is there.

    A run that is complete stays as it is. Exceptions: a search's summary; a study that was resumed with more trials
    (whatever the clock said then and now); a study with as many or fewer, or a trial, with a later end: its data had
    changed.
    """
    if new.kind == SUMMARY:
        return True
    if new.status == RUNNING or known.status == RUNNING:
        return new.status != RUNNING
    return new.trials > known.trials or (new.end or 0) > (known.end or 0)


def is_surplus(study: TrackedRun, key: str) -> bool:
    """Return whether a study's new run has no such trial any more, or no longer among its best ones.

    key: of a run below it.
    """
    number = trial_of(study.key, key)
    if number is None:
        return False
    return number >= study.trials if study.children is None else key not in study.children


def _study_name(record: StudyRecord | TrialRecord) -> str:
    """The study's own name when it tells the customer, else both."""
    name = record.study if record.customer in record.study else f"{record.customer} {record.study}"
    return mlflow_names.text(name, mlflow_names.KEY_LIMIT)


def _trial_name(record: TrialRecord) -> str:
    return mlflow_names.text(f"{_study_name(record)}/{record.trial:04d}", mlflow_names.KEY_LIMIT)


def _counted_step(record: TrialRecord) -> int:
    """The step whose score counts."""
    return record.best_step or (record.steps[-1].step if record.steps else 0)


def _trial_metrics(record: TrialRecord, start: int, end: int) -> Iterator[mlflow_names.MetricPoint]:
    every = {name: value for each in record.steps for name, value in each.metrics.items()} | {**record.metrics}
    names = mlflow_names.keys(["score", "fit_seconds", record.shown_metric, *record.reported(every)])
    when = {}
    for step in record.steps:
        moment = when[step.step] = start + max(0, int(step.seconds * 1000))
        yield names[record.shown_metric], step.score, step.step, moment
        for name, value in record.reported(step.metrics).items():
            yield names[name], value, step.step, moment
    last = _counted_step(record)
    if record.score is not None:
        yield "score", record.score, last, end
    written = next((step.metrics for step in record.steps if step.step == last), {})
    for name, value in record.reported({n: v for n, v in record.metrics.items() if n not in written}).items():
        yield names[name], value, last, end
    yield "fit_seconds", record.fit_seconds, 0, end  # the trial's own length is the run's
    for step_number, config in record.changes:
        for name, setting in mlflow_names.flatten(config):
            if isinstance(setting, int | float) and not isinstance(setting, bool):
                yield mlflow_names.key(f"hp.{name}"), float(setting), step_number, when.get(step_number, start)


def _plain(record: StudyRecord) -> dict[str, object]:
    row = {column.name: getattr(record, column.name) for column in fields(record)}
    # JSON has no NaN; a reader of the tag should not need Python.
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else plain(value)
        for name, value in row.items()
        if name not in ("config", "error", "notes")
    }


def _texts(record: StudyRecord | TrialRecord, columns: Iterable[str]) -> dict[str, str]:
    """Columns of a record as tags, without those that are empty."""
    found = {}
    for column in columns:
        value = getattr(record, column)
        value = texts(value) if column == "notes" else value
        if value not in (None, ""):
            found[f"{PREFIX}{column}"] = str(value)
    return found


def _tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Values as MLflow takes them; errors and reasons may quote a URI with a secret in it."""
    return {
        name: mlflow_names.text(mask_in(value) if "://" in value else value, mlflow_names.TAG_LIMIT)
        for name, value in tags.items()
    }


def _milliseconds(seconds: float) -> int:
    return max(0, int(seconds * 1000))


@cache
def user() -> str:
    """Who runs this, for MLflow's column of users."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user in this container
        return "unknown"

"""What workers tell the driver: parts of records that they have written, steps of a trial, an error.

A part is written first and reported second. Through Tune, each report travels as one value of what Tune takes for a
trial's metrics.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, get_args

from tuning.errors import StorageError
from tuning.notes import Note
from tuning.records.ownership import Term
from tuning.records.parts import ENDING, STUDIES, TRIALS, Budget, PartWritten, part_name
from tuning.records.schema import FAILED, FINISHED, OK, POOLED, Record, StudyRecord, TrialRecord
from tuning.records.tables import encode
from tuning.runs.progress import WorkerError
from tuning.steps import Step
from tuning.storage.run_directory import RunDirectory
from tuning.study.trial import TrialShape

if TYPE_CHECKING:
    from ray import tune
    from ray.tune.experiment import Trial

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrialLength(TrialShape):
    """What a worker knows of its trial before the first step. cohort_steps: of the longest trial of its cohort."""

    cohort_steps: int = 0


@dataclass(frozen=True, slots=True)
class StepReport:
    """A spread trial has made a step.

    Attributes:
        step: the step, in plain numbers and without its state.
        seconds, fit_seconds: wall and CPU time of the trial so far.
        length: of the trial.
        worker: where it was made.
    """

    step: Step
    seconds: float
    fit_seconds: float
    length: TrialLength
    worker: str = ""


@dataclass(frozen=True, slots=True)
class FailureReport:
    """A spread trial has failed.

    Attributes:
        reason: why.
        error: the traceback, None without one.
        length: of the trial, None where that is not known yet.
        of_study: whether the study cannot go on, whatever the configuration.
    """

    reason: Note
    error: str | None = None
    length: TrialLength | None = None
    of_study: bool = False


WorkerReport: TypeAlias = PartWritten | StepReport | FailureReport | WorkerError
#: Hears what workers report.
Listener: TypeAlias = Callable[[WorkerReport], None]
REPORT = "report"  # the key of the value
#: What Tune hands to callbacks and schedulers.
TuneResult: TypeAlias = Mapping[str, object]


def hand_on(listener: Listener, report: WorkerReport) -> None:
    """Give a worker's report to a listener; never raises."""
    try:
        listener(report)
    except Exception:  # an exception in a callback would end the whole search
        logger.exception("a listener of the run failed; the search continues")


def report_to_tune(report: WorkerReport, checkpoint: tune.Checkpoint | None = None) -> None:
    """Report from a worker of Tune's. checkpoint: what goes with it."""
    from ray import tune

    tune.report({REPORT: report}, checkpoint=checkpoint)


def report_in(result: TuneResult) -> WorkerReport | None:
    """Return the report that Tune hands on; None where it speaks for itself."""
    found = result.get(REPORT)
    return found if isinstance(found, get_args(WorkerReport)) else None


def error_text(trial: Trial) -> str:
    """Return what Tune has written down of a trial's last error; empty when that is nothing."""
    try:
        return Path(trial.error_file).read_text(encoding="utf-8", errors="replace")
    except (OSError, TypeError):
        return ""


def worker_died(text: str) -> bool:
    """Return whether Tune's words on why a trial ended are of a process that died.

    Those of an exception in it (its code could not be loaded, say) come with the lines of a stack.
    """
    return '  File "' not in text


@dataclass
class PartWriter:
    """Collects a batch's records and writes them as parts about every `interval` seconds: written first, then reported.

    report: told of each part once it is in place. budgets: by study.
    flush_files: called before studies are written, to wait for the files that their records name.
    recorded: told of a part's trials once it is in place, before it is reported.
    before: called before anything is written.
    """

    directory: RunDirectory
    term: Term
    batch: int
    report: Listener
    interval: float = 1.0
    flush_files: Callable[[], None] = lambda: None
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    recorded: Callable[[Sequence[TrialRecord]], None] = lambda _: None
    before: Callable[[], None] = lambda: None
    trials: list[TrialRecord] = field(default_factory=list)
    studies: list[StudyRecord] = field(default_factory=list)
    _last: float = field(default_factory=time.monotonic)

    def add(self, records: Iterable[Record]) -> None:
        """Take records over; those of one call are written together."""
        for record in records:
            if isinstance(record, TrialRecord):
                self.trials.append(record)
            else:
                self.studies.append(record)

    @property
    def due(self) -> bool:
        """True when it is time to flush."""
        return time.monotonic() - self._last >= self.interval

    def flush(self) -> None:
        """Write what there is, trials before the studies that they belong to; then report it."""
        written = []
        if self.trials or self.studies:
            self.before()
        for kind, records in ((TRIALS, self.trials), (STUDIES, self.studies)):
            if records:
                if kind == STUDIES:
                    self.flush_files()
                data = encode(records)
                name = part_name(self.term.folder, self.batch, kind, data)
                self.directory.write(name, data)
                written.append(self._studies_written(name) if kind == STUDIES else self._trials_written(name))
                if kind == TRIALS:
                    self.recorded(self.trials)
                records.clear()  # only after they are in place
        for part in written:
            self.report(part)
        self._last = time.monotonic()

    def _trials_written(self, part: str) -> PartWritten:
        scores = [record.score for record in self.trials if record.state == FINISHED and record.score is not None]
        better = max if self.trials[0].mode == "max" else min
        return PartWritten(
            part,
            trials=len(self.trials),
            work=sum(self._budget(record).trial_work for record in self.trials),
            failed=sum(record.state == FAILED for record in self.trials),
            best=better(scores, default=None),
        )

    def _studies_written(self, part: str) -> PartWritten:
        left = [(self._budget(record), record.trials) for record in self.studies]
        return PartWritten(
            part,
            studies=len(self.studies),
            work=sum((budget.n_trials - trials + ENDING) * budget.trial_work for budget, trials in left),
            unspent=sum(max(0, budget.n_trials - trials) for budget, trials in left),
            no_model=sum(record.status not in (OK, POOLED) for record in self.studies),
            gains=tuple(record.gain for record in self.studies if record.gain is not None),
        )

    def _budget(self, record: Record) -> Budget:
        return self.budgets.get(record.study) or Budget(record.trials if isinstance(record, StudyRecord) else 1)

    def flush_on_exit(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """At the end of the work: when the driver or a signal ended it, write what is finished; never raises."""
        if error is not None and not isinstance(error, StorageError):
            self.report = lambda _: None
            with contextlib.suppress(Exception):
                self.flush()
        return False

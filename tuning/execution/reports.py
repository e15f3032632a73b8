"""What a worker reports to the driver: parts of records that are in place, steps of a trial, an error.

Through Tune, each report travels as one value of what Tune takes for a trial's metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, get_args

from tuning.notes import Note
from tuning.steps import Step

if TYPE_CHECKING:
    from ray import tune


@dataclass(frozen=True, slots=True)
class PartWritten:
    """A part of records is in place.

    Attributes:
        part: its name.
        trials, studies: how many records of each kind it holds.
        work: what was done of the budgets; a study that ends has done all of its own.
        failed: trials that raised or crashed.
        best: score of its trials, None where none has one.
        unspent: trials that its studies have left.
        no_model: studies that ended without one.
        gains: of its studies that have one.
    """

    part: str
    trials: int = 0
    studies: int = 0
    work: float = 0.0
    failed: int = 0
    best: float | None = None
    unspent: int = 0
    no_model: int = 0
    gains: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialLength:
    """What a worker knows of its trial before the first step; its first three fields are those of `TrialShape`.

    Attributes:
        full_steps: steps of the trial if nobody stops it.
        best_prefix: whether every prefix of the steps is a model of its own.
        progress: whether the steps are one training's, and not folds.
        cohort_steps: steps of the longest trial of its cohort.
    """

    full_steps: float
    best_prefix: bool
    progress: bool
    cohort_steps: int


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


@dataclass(frozen=True, slots=True)
class WorkerError:
    """A worker cannot work, or can have no place. message: why. code: that of the error, if one is why."""

    message: str
    code: str = ""


WorkerReport: TypeAlias = PartWritten | StepReport | FailureReport | WorkerError
#: Hears what workers report.
Listener: TypeAlias = Callable[[WorkerReport], None]
REPORT = "report"  # the key of the value
#: What Tune hands to callbacks and schedulers.
TuneResult: TypeAlias = Mapping[str, object]


def report_to_tune(report: WorkerReport, checkpoint: tune.Checkpoint | None = None) -> None:
    """Report from a worker of Tune's. checkpoint: what goes with it."""
    from ray import tune

    tune.report({REPORT: report}, checkpoint=checkpoint)


def report_in(result: TuneResult) -> WorkerReport | None:
    """Return the report that Tune hands on; None where it speaks for itself."""
    found = result.get(REPORT)
    return found if isinstance(found, get_args(WorkerReport)) else None

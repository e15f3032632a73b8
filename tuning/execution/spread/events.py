"""What happens to a spread study, in order; replayed, its events put a new core where the old one was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tuning.execution.reports import StepReport, TrialLength
from tuning.notes import Note
from tuning.study.interfaces import Configuration


@dataclass(frozen=True, slots=True)
class TrialSuggested:
    """A trial begins. seconds: that its suggestion took."""

    config: Configuration
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class StepTaken:
    """A trial has made a step.

    Attributes:
        report: of its worker.
        stop: whether the scheduler or a rule has stopped the trial.
        ruled: the state that a rule has ended it in, and why; None where no rule has.
    """

    report: StepReport
    stop: bool
    ruled: tuple[str, Note | None] | None = None


@dataclass(frozen=True, slots=True)
class CheckpointSaved:
    """A trial can go on from a state. path: of it in the run directory."""

    path: str


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A trial has ended.

    Attributes:
        state: of its record.
        failure: why it failed, and the traceback; None where it has not.
        crash: the number of the trial that ended its study's workers, and what Tune said of it; None without one.
        length: of a trial that has ended before its first step, where its worker knew it.
    """

    state: str
    failure: tuple[Note, str | None] | None = None
    crash: tuple[int, str | None] | None = None
    length: TrialLength | None = None


@dataclass(frozen=True, slots=True)
class StudyStopped:
    """A rule has ended the study."""

    reason: Note


Occurrence: TypeAlias = TrialSuggested | StepTaken | CheckpointSaved | TrialEnded | StudyStopped
NO_TRIAL = -1


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the journal.

    Attributes:
        study: id of the study.
        order: position in the study.
        trial: its number, `NO_TRIAL` where it is of the study as a whole.
        what: what has happened.
        at: seconds for which the study had been searched; None where that is not known.
    """

    study: str
    order: int
    trial: int
    what: Occurrence
    at: float | None = None

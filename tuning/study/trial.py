"""A trial as searchers, schedulers and the study core see it, wherever it trains."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, Protocol

from schedulers.protocols import TrialResult
from tuning.notes import EndCode, Note
from tuning.records.schema import FAILED
from tuning.steps import Step
from tuning.study.interfaces import Configuration

PENDING, RUNNING, PAUSED, TERMINATED, ERROR = "PENDING", "RUNNING", "PAUSED", "TERMINATED", "ERROR"


@dataclass(frozen=True, slots=True)
class TrialShape:
    """How long a configuration's trial is, and what its steps are.

    full_steps: steps of a trial that nobody stops. best_prefix: every prefix of the steps is a model of its own, so
    that the best step counts; otherwise the last one does. progress: the steps are one training's, and not folds;
    only such a trial ends on its plateau.
    """

    full_steps: float = math.inf
    best_prefix: bool = False
    progress: bool = False


#: The last step counts, and a trial is as long as the longest one of its cohort.
ANY_SHAPE = TrialShape()


class Verdict(NamedTuple):
    """The state in which a trial ends, and the reason; of a stopped one its scheduler has it where it is None here."""

    state: str
    reason: Note | None = None


@dataclass(frozen=True, slots=True)
class Exploit:
    """A trial took over another's model: after `step` steps, from trial number `donor`."""

    step: int
    donor: int


class AnyStep(Protocol):
    """A step as records and generators have it."""

    @property
    def step(self) -> int: ...
    @property
    def score(self) -> float: ...


def first_gap(numbers: Collection[int]) -> int:
    """Return the first trial number that is missing: what comes after it was suggested knowing the missing trial."""
    return next(number for number in count() if number not in numbers)


@dataclass(slots=True, eq=False, repr=False)
class Trial:
    """A trial from its suggestion on.

    number, trial_id, config, family: which trial; `config` is the one in force.
    status: as in Ray. in_cohort: its scheduler knows it.
    shape: known when training starts.
    steps: the way to the trial's last model, without `get_state`: after an exploit the donor's steps up to there, then
        its own. step_seconds: for each of them, active wall seconds since the trial began (0.0 for a donor's).
    verdict: how it is to end, once that is decided; None for by itself. error: traceback of a failed trial.
    started: epoch seconds. seconds: active wall time. fit_seconds: CPU time in the training code.
    suggest_seconds: wall time in the searcher. worker: host:pid of the process that trains it; empty for this one.
    attempt: from 1; more after a worker was lost in it.
    lineage: the exploits on the way to the last model.
    schedule: (steps done before, config) in order: refitting the last model means training with each config from its
        step on. Without an exploit, `config` is the whole story.

    What came of it, once it has ended:

    state: "finished" (it had its full budget, or more would not have helped), "stopped" or "failed".
    reason: why it was stopped or failed; of a finished one, the rule that ended it, else None.
    best: position in `steps` of the step that counts, None without steps. score: of that step.
    suggested, told: positions in the study's sequence of suggestions and ends.
    spent_steps, spent_seconds: by the whole study until then, trials that go on included; see `StudyCore`. charged: how
        many of the trial's own seconds the study's clock holds.

    Hashable by identity.
    """

    number: int
    trial_id: str
    config: dict[str, object]
    family: str
    status: str = PENDING
    in_cohort: bool = False
    last_result: TrialResult = field(default_factory=dict)
    shape: TrialShape = ANY_SHAPE
    steps: list[Step] = field(default_factory=list)
    step_seconds: list[float] = field(default_factory=list)
    verdict: Verdict | None = None
    error: str | None = None
    started: float = 0.0
    seconds: float = 0.0
    fit_seconds: float = 0.0
    suggest_seconds: float = 0.0
    worker: str = ""
    attempt: int = 1
    lineage: tuple[Exploit, ...] = ()
    schedule: tuple[tuple[int, Configuration], ...] = ()
    state: str = ""
    reason: Note | None = None
    best: int | None = None
    score: float | None = None
    suggested: int = 0
    told: int = 0
    spent_steps: int = 0
    spent_seconds: float = 0.0
    charged: float = 0.0

    def __str__(self) -> str:
        return self.trial_id

    __repr__ = __str__

    def is_finished(self) -> bool:
        """Return whether it has ended, in whatever state."""
        return self.status in (TERMINATED, ERROR)

    def fail(self, reason: Note, error: str | None = None) -> None:
        """Nothing but its end is to come."""
        self.verdict, self.error = Verdict(FAILED, reason), error

    @property
    def failed(self) -> bool:
        """Whether it has failed, be it that nobody has heard of it yet."""
        return self.verdict is not None and self.verdict.state == FAILED

    def release(self) -> None:
        """Drop what training holds: the trial has ended, and nobody will start from it."""


def not_finite(step: AnyStep) -> Note:
    """Return the reason of a trial that has a NaN or infinite score."""
    return EndCode.NON_FINITE_METRIC(score=str(step.score), step=step.step)

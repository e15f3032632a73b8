"""median: the median stopping rule (Golovin et al. 2017, Google Vizier, section 3.2.2)."""

from __future__ import annotations

from bisect import insort

from pydantic import Field

from schedulers.direction import Mode, worth_of
from schedulers.mutation import NO_MUTATIONS, Mutations
from schedulers.protocols import Controller, Reason, ScheduledTrial, Scheduler, TrialResult
from schedulers.spec import SchedulerSpec, Steps
from schedulers.study_scheduler import InOrder


class MedianSpec(SchedulerSpec):
    """Stops a trial whose best score so far is worse than the median of the others' running averages.

    Attributes:
        grace_period: steps every trial may run; the averages begin there.
        min_samples_required: other trials that must have come as far before any is stopped.
    """

    name = "median"
    summary = "stops a trial whose best score is worse than the median of the others' running averages"

    grace_period: Steps = 1
    min_samples_required: int = Field(default=3, ge=1, le=1_000_000)

    def build(
        self, *, metric: str, mode: Mode, max_steps: int, seed: int, mutations: Mutations = NO_MUTATIONS
    ) -> Scheduler:
        return MedianScheduler(self, metric, mode, max_steps)


class MedianScheduler(InOrder):
    """Ray's median stopping rule, never pausing, with reasons and a stop for NaN.

    Ray's goes through all results of all trials at every step; here each trial leaves its running average at
    each step once, and a decision costs the same with ten trials and with ten thousand. (Ray also counts a
    completed trial's last result twice.)
    """

    def __init__(self, spec: MedianSpec, metric: str, mode: Mode, max_steps: int) -> None:
        self.set_up(spec, metric, mode, max_steps)
        self._grace, self._required = spec.grace_period, spec.min_samples_required
        self._runs: dict[str, _Run] = {}
        self._means: dict[int, list[float]] = {}  # step -> the trials' running averages there, ascending

    def on_trial_add(self, tune_controller: Controller, trial: ScheduledTrial) -> None:
        self._runs[trial.trial_id] = _Run()

    def on_trial_result(self, tune_controller: Controller, trial: ScheduledTrial, result: TrialResult) -> str:
        step, score = self._read(result)
        if self._stop_not_finite(trial.trial_id, step, score):
            return "STOP"
        run, worth = self._runs[trial.trial_id], worth_of(score, self._mode)
        run.best = max(run.best, worth)
        if step < self._grace:
            return "CONTINUE"
        for missed in range(max(run.step + 1, self._grace), step):  # a trial that reports every other step
            if run.count:
                insort(self._means.setdefault(missed, []), run.total / run.count)
        run.step, run.count, run.total = step, run.count + 1, run.total + worth
        means = self._means.setdefault(step, [])
        others, median = len(means), _median(means)
        insort(means, run.total / run.count)
        if others < self._required or run.best >= median:
            return "CONTINUE"
        values = {
            "step": step,
            "score": worth_of(run.best, self._mode),
            "median": worth_of(median, self._mode),
            "others": others,
        }
        self._reasons[trial.trial_id] = Reason("median_cutoff", self.name, values)
        return "STOP"

    def forget(self, trial: ScheduledTrial) -> None:
        self._runs.pop(trial.trial_id, None)


class _Run:
    """One trial so far: its best score, and the sum and number of its scores since the grace period."""

    __slots__ = ("best", "count", "step", "total")

    def __init__(self) -> None:
        self.best, self.total, self.count, self.step = float("-inf"), 0.0, 0, 0


def _median(ascending: list[float]) -> float:
    middle = len(ascending) // 2
    if len(ascending) % 2:
        return ascending[middle]
    return (ascending[middle - 1] + ascending[middle]) / 2 if ascending else float("-inf")

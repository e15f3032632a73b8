"""fifo: every trial runs to its end."""

from __future__ import annotations

from schedulers.direction import Mode
from schedulers.mutation import NO_MUTATIONS, Mutations
from schedulers.protocols import Controller, ScheduledTrial, Scheduler, TrialResult
from schedulers.spec import SchedulerSpec
from schedulers.study_scheduler import InOrder


class FifoSpec(SchedulerSpec):
    """No early stopping: the right choice when trials are short or steps say little about the end."""

    name = "fifo"
    summary = "every trial runs to its end"
    stops = False

    def build(
        self, *, metric: str, mode: Mode, max_steps: int, seed: int, mutations: Mutations = NO_MUTATIONS
    ) -> Scheduler:
        return FifoScheduler(self, metric, mode, max_steps)


class FifoScheduler(InOrder):
    """What Ray's FIFO scheduler does."""

    def __init__(self, spec: FifoSpec, metric: str, mode: Mode, max_steps: int) -> None:
        self.set_up(spec, metric, mode, max_steps)

    def on_trial_result(self, tune_controller: Controller, trial: ScheduledTrial, result: TrialResult) -> str:
        return "CONTINUE"

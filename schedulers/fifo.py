"""fifo: every trial runs to its end."""

from __future__ import annotations

from schedulers.mutation import NO_MUTATIONS, Mutations
from schedulers.protocols import Scheduler
from schedulers.ray_classes import in_front_of_ray
from schedulers.spec import Mode, SchedulerSpec
from schedulers.study_scheduler import StudyScheduler


class FifoSpec(SchedulerSpec):
    """No early stopping: the right choice when trials are short or steps say little about the end."""

    name = "fifo"
    summary = "every trial runs to its end"
    stops = False

    def build(
        self, *, metric: str, mode: Mode, max_steps: int, seed: int, mutations: Mutations = NO_MUTATIONS
    ) -> Scheduler:
        return in_front_of_ray(FifoScheduler)(self, metric, mode, max_steps)


class FifoScheduler(StudyScheduler):
    """Ray's FIFO scheduler."""

    ray_class = "ray.tune.schedulers.FIFOScheduler"

    def __init__(self, spec: FifoSpec, metric: str, mode: Mode, max_steps: int) -> None:
        super().__init__()
        self.set_up(spec, metric, mode, max_steps)

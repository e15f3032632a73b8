"""The Tune trainable of a run: it works through a shard of packed studies, or trains one trial of a spread study."""

from __future__ import annotations

from collections.abc import Callable

from tuning.execution.context import WorkerRun
from tuning.execution.jobs import ShardJob, TrialJob, job_in
from tuning.execution.packed import run_shard
from tuning.execution.spread.trial_worker import forget_run, run_trial
from tuning.execution.study_run import unblock_sigterm


def run_trainable(run: WorkerRun, name: str) -> Callable[[dict[str, object]], None]:
    """The Tune trainable of a run; its name carries the run, because Ray keeps trainables by name within a job."""

    def trainable(config: dict[str, object]) -> None:
        unblock_sigterm()
        match job_in(config):
            case ShardJob(shard=shard):
                forget_run()
                run_shard(run, shard)
            case TrialJob() as job:
                run_trial(run, job)

    trainable.__name__ = name
    return trainable

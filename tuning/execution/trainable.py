"""The Tune trainable of a run: it works through a shard of packed studies, or trains one trial of a spread study."""

from __future__ import annotations

from collections.abc import Callable

from tuning.basics.timing import Timing
from tuning.definition.run_spec import RunSpec
from tuning.execution.jobs import ShardJob, TrialJob, job_in
from tuning.execution.packed import run_shard
from tuning.execution.spread.trial_worker import forget_run, run_trial
from tuning.execution.study_run import unblock_sigterm
from tuning.records.ownership import Term


def run_trainable(
    uri: str, term: Term, name: str, spec: RunSpec | None, timing: Timing
) -> Callable[[dict[str, object]], None]:
    """The Tune trainable; its name carries the run, because Ray keeps trainables by name within a job.

    spec: where it holds a function, which cannot be written down; else the one in the plan file.
    """

    def trainable(config: dict[str, object]) -> None:
        unblock_sigterm()
        match job_in(config):
            case ShardJob(shard=shard):
                forget_run()
                run_shard(uri, term, shard, spec, timing)
            case TrialJob() as job:
                run_trial(uri, term, spec, job, timing)

    trainable.__name__ = name
    return trainable

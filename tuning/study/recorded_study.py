"""A study's trials as records; the loop itself is in `tuning/study/loop.py`."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import schedulers
from schedulers.mutation import NO_MUTATIONS
from tuning.definition.options import WarmStart
from tuning.evaluation.study_data import MODEL
from tuning.records.schema import StepRecord, TrialRecord
from tuning.seeds import derive, trial_seed
from tuning.steps import Step
from tuning.study.loop import TrialLoop
from tuning.study.mutations import mutations
from tuning.study.study import SCORE, Study, Training
from tuning.study.trial import EarlierTrial, FinishedTrial
from tuning.study.warm_start import searcher_points


@dataclass
class RecordedStudy:
    """Runs one study's trials, giving a record for each.

    run: id of the run. mode: "max" or "min". recorded: this study's records of earlier attempts, which are
    replayed into the searcher and the schedulers, not run again. attempt: of the trials run now. on_start: told a
    trial's number before its training starts. rules: built stopping rules of the study; once it has ended, `over` says
    which of them ended it. warm: what it begins with.

    A study under a scheduler that pauses trials (PBT, HyperBand, …) gives its records when it ends: until then no
    trial is over, and such a study restarts whole.
    """

    run: str
    study: Study
    training: Training
    space: Any
    metric: str
    mode: str
    trials: int
    recorded: Sequence[TrialRecord] = ()
    attempt: int = 1
    on_start: Callable[[int], None] | None = None
    rules: Sequence[Any] = ()
    warm: Sequence[WarmStart] = ()
    #: The rule that ended the study before its budget was used up, as a sentence; empty without one.
    over: str = field(default="", init=False)

    def __iter__(self) -> Iterator[TrialRecord]:
        study = self.study
        pauses = bool(study.scheduler.pauses)
        latest: dict[str, Any] = {}
        searcher = study.algorithm.build(
            self.space,
            metric=SCORE,
            mode=self.mode,
            seed=study.seed,
            trials=self.trials,
            **searcher_points(self.space, self.warm),
        )

        def family(config: Mapping[str, Any]) -> str:
            latest.clear()
            latest.update(config)
            return self.training.family(config)

        def scheduler_for(name: str) -> Any:
            spec, frozen = study.scheduler, self.training.frozen(latest)
            varied = mutations(self.space, latest, frozen or (), MODEL) if spec.mutates else NO_MUTATIONS
            if spec.needs_state and (frozen is None or not spec.usable(varied)):
                spec = schedulers.parse("fifo")  # this family's trials cannot take over a model, or change nothing
            return spec.build(
                metric=SCORE,
                mode=self.mode,
                max_steps=self.training.race_steps(latest, self.space),
                seed=derive(study.seed, "scheduler", name),
                mutations=varied,
            )

        def start(config: Mapping[str, Any], number: int, state: Any) -> Iterable[Step]:
            return self.training.start(config, trial_seed(self.study.seed, number), state)

        drive = TrialLoop(
            searcher,
            scheduler_for,
            start,
            trials=self.trials,
            metric=SCORE,
            mode=self.mode,
            family=family,
            best_prefix=self.training.best_prefix,
            progress=self.training.progress,
            full_steps=self.training.full_steps,
            replay=() if pauses else [_earlier(record) for record in self.recorded],
            rules=self.rules,
            on_start=self.on_start,
        )
        try:
            done = (self._record(trial) for trial in drive)
            yield from list(done) if pauses else done
        finally:
            self.over = drive.over
            drive.close()

    def _record(self, trial: FinishedTrial) -> TrialRecord:
        steps = [
            StepRecord(step.step, step.score, seconds, step.metrics)
            for step, seconds in zip(trial.steps, trial.step_seconds, strict=True)
        ]
        best = trial.steps[trial.best] if trial.best is not None else None
        return TrialRecord(
            run=self.run,
            study=self.study.id,
            customer=self.study.customer.id,
            trial=trial.number,
            attempt=self.attempt,
            suggested=trial.suggested,
            told=trial.told,
            config=trial.config,
            family=trial.family,
            algorithm=self.study.algorithm.name,
            scheduler=self.study.scheduler.name,
            metric=self.metric,
            mode=self.mode,
            state=trial.state,
            reason=trial.reason,
            steps=steps,
            best_step=best.step if best is not None else None,
            score=trial.score,
            fold_scores=best.fold_scores if best is not None else (),
            metrics=best.metrics if best is not None else {},
            study_seed=self.study.seed,
            seed=trial_seed(self.study.seed, trial.number),
            started=trial.started,
            seconds=trial.seconds,
            fit_seconds=trial.fit_seconds,
            suggest_seconds=trial.suggest_seconds,
            worker=worker_name(),
            versions=versions(),
            error=trial.error,
            lineage=json.dumps([asdict(exploit) for exploit in trial.lineage]) if trial.lineage else None,
            schedule=json.dumps(trial.schedule) if trial.schedule else None,
        )


def _earlier(record: TrialRecord) -> EarlierTrial:
    return EarlierTrial(record.trial, record.config, record.steps, record.state, record.seconds)


@cache
def worker_name() -> str:
    """host:pid of this process."""
    return f"{socket.gethostname()}:{os.getpid()}"


@cache
def versions() -> str:
    """The versions that a result depends on."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = [f"python {platform.python_version()}"]
    for name in ("tuning-service", "ray", "optuna", "hyperopt", "scikit-learn", "xgboost", "numpy", "pandas"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return "; ".join(found)

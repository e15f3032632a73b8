"""The searcher and the schedulers of a study, built from its specs."""

from __future__ import annotations

from collections.abc import Collection

import schedulers
from schedulers.mutation import NO_MUTATIONS
from schedulers.protocols import Scheduler
from schedulers.spec import Mode
from tuning.basics.seeds import derive
from tuning.records.schema import MODEL
from tuning.study.interfaces import Configuration, Searcher
from tuning.study.mutations import mutations
from tuning.study.study import SCORE, Study, family_of
from tuning.study.warm_start import StartingPoints, points_known, points_to_try


def build_searcher(study: Study, mode: Mode, start: StartingPoints) -> Searcher:
    """A new searcher. start: what the study starts with."""
    searcher: Searcher = study.algorithm.build(
        study.space,
        metric=SCORE,
        mode=mode,
        seed=study.seed,
        n_trials=study.n_trials,
        points=points_to_try(study.space, start)[: study.n_trials],  # more are never suggested, only checked
        evaluated=points_known(start.entries),
    )
    return searcher


def build_scheduler(
    study: Study,
    mode: Mode,
    config: Configuration,
    race_steps: int,
    frozen: Collection[str] | None = (),
) -> Scheduler:
    """A new scheduler for the race of a configuration.

    race_steps: of the longest trial that the race can have. frozen: as of `StudyTraining`. Where a trial cannot take
    over a model, or nothing may change, all trials of the race run to their end.
    """
    spec = study.scheduler
    varied = mutations(study.space, config, frozen or (), MODEL) if spec.mutates else NO_MUTATIONS
    if spec.needs_state and (frozen is None or not spec.usable(varied)):
        spec = schedulers.parse("fifo")
    return spec.build(
        metric=SCORE,
        mode=mode,
        max_steps=race_steps,
        seed=derive(study.seed, "scheduler", family_of(config)),
        mutations=varied,
    )

"""A study with what its run has settled for it: its searcher, its schedulers, its core and its records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import schedulers
from schedulers.direction import Mode
from schedulers.mutation import NO_MUTATIONS
from schedulers.protocols import Scheduler
from search_spaces.values import own_copy
from tuning.basics.seeds import derive
from tuning.records.schema import MODEL, TrialRecord
from tuning.study.core import StudyCore
from tuning.study.interfaces import Configuration, Rule, Searcher
from tuning.study.mutations import mutations
from tuning.study.record import trial_record
from tuning.study.study import SCORE, Study, family_of
from tuning.study.trial import Trial
from tuning.study.trial_view import TrialT


@dataclass(frozen=True)
class PlannedStudy:
    """A study with what its run has settled for it, wherever its trials train.

    Attributes:
        run: id of the run.
        study: the study.
        metric, mode: the run's metric, and whether a larger ("max") or a smaller ("min") score is better.
        rules: built stopping rules, of this study alone.
        points_to_evaluate: what it tries first; None for the default configuration.
        evaluated: configurations with a known score.
    """

    run: str
    study: Study
    metric: str
    mode: Mode
    rules: Sequence[Rule] = ()
    points_to_evaluate: Sequence[Configuration] | None = None
    evaluated: Sequence[tuple[Configuration, float]] = ()

    def searcher(self) -> Searcher:
        """Return a new searcher."""
        study, points = self.study, self.points_to_evaluate
        points = [study.space.default()] if points is None else [own_copy(each) for each in points]
        searcher: Searcher = study.algorithm.build(
            study.space,
            metric=SCORE,
            mode=self.mode,
            seed=study.seed,
            n_trials=study.n_trials,
            points=points[: study.n_trials],  # more are never suggested, only checked
            evaluated=self.evaluated,
            once=not study.scheduler.mutates,  # in a population the same point becomes something else
        )
        return searcher

    def scheduler(self, config: Configuration, cohort_steps: int, frozen: Collection[str] | None = ()) -> Scheduler:
        """Return a new scheduler for the cohort of a configuration.

        cohort_steps: of the longest trial that the cohort can have. frozen: see `StudyTraining`. Where a trial cannot
        take over a model, or nothing may change, all trials of the cohort run to their end.
        """
        study, spec = self.study, self.study.scheduler
        varied = mutations(study.space, config, frozen or (), MODEL) if spec.mutates else NO_MUTATIONS
        if spec.needs_state and (frozen is None or not spec.usable(varied)):
            spec = schedulers.parse("fifo")
        return spec.build(
            metric=SCORE,
            mode=self.mode,
            max_steps=cohort_steps,
            seed=derive(study.seed, "scheduler", family_of(config)),
            mutations=varied,
        )

    def core(
        self,
        scheduler_for: Callable[[Configuration], Scheduler],
        new_trial: Callable[[int, str, dict[str, object], str], TrialT],
    ) -> StudyCore[TrialT]:
        """Return a new core with a searcher of its own; the arguments are those of `StudyCore`."""
        return StudyCore(
            self.searcher(),
            scheduler_for,
            new_trial,
            n_trials=self.study.n_trials,
            metric=SCORE,
            mode=self.mode,
            family=family_of,
            rules=self.rules,
        )

    def record(self, trial: Trial) -> TrialRecord:
        """Return the record of a trial that has ended."""
        return trial_record(trial, self.study, self.run, self.metric, self.mode)

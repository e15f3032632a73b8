"""A study under a scheduler that pauses trials; its helpers train ahead of its decisions.

The decisions are those of `tuning.study.loop`, one after the other in this process. Most of what they need next
is known before: a trial that goes on trains up to its next rung or round, whatever the others do. So helpers train all
of these trials at once, and the study takes in their steps in its own order. Steps that a decision makes useless are
thrown away. The trials are the same with any number of helpers, whichever is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from schedulers.protocols import Scheduler
from tuning.errors import StudyError
from tuning.steps import Step
from tuning.study.core import STOP, StudyCore
from tuning.study.helpers import Demand, HelperPool, RemoteTraining, TrainedStep, TrainingEnd, TrainingStart
from tuning.study.interfaces import Configuration, Searcher
from tuning.study.local_trial import LocalTrial
from tuning.study.loop import TrialLoop, any_shape
from tuning.study.trial import TrialShape

MOST_STEPS = 1_000_000_000  # of a trial that does not say how long it is


@dataclass(slots=True, eq=False, repr=False)
class AheadTrial(LocalTrial):
    """A trial that helpers train."""

    training: RemoteTraining | None = None

    def receive(self, found: TrainedStep | TrainingEnd) -> Step | None:
        """Take in a step that a helper has trained; None at the end of training, as `pull`."""
        self.seconds += found.seconds
        self.fit_seconds += found.fit_seconds
        if isinstance(found, TrainingEnd):
            if found.reason is None:
                return None
            if found.of_study:
                raise StudyError(found.reason)
            self.fail(found.reason, found.error)
            return None
        training, self.worker = self.training, found.worker
        assert training is not None
        taken = training.taken
        self.get_state = (lambda: training.state_after(taken)) if found.saves else None
        self.steps_run += 1
        self.steps.append(found.step)
        self.step_seconds.append(self.seconds)
        return found.step

    def training_in(self, pool: HelperPool, exact: Callable[[Configuration], bool]) -> RemoteTraining:
        """Its training, which begins now if it has not yet. exact: see `AheadLoop`."""
        if self.training is None:
            inherited, self._inherited = self._inherited, None
            beginning = TrainingStart(self.number, dict(self.config), inherited, exact(self.config))
            self.training = pool.begin(beginning)
        return self.training

    def _close_generator(self) -> None:
        training, self.training = self.training, None
        if training is not None:
            training.drop()


class AheadLoop(TrialLoop):
    """As `TrialLoop`, under a scheduler that pauses trials; the training code is where the helpers are.

    core: see `TrialLoop`; its trials are `AheadTrial`s.
    pool: the helpers.
    twin: makes a searcher like the study's own. It is told nothing. As long as it suggests what the study's own
        suggests later, helpers train its suggestions before it is their turn.
    exact: whether training with a configuration goes on from a state of its own as if it had never stopped. Else it
        stays with its helper, and must begin anew when that one dies.
    """

    def __init__(
        self,
        core: StudyCore[LocalTrial],
        pool: HelperPool,
        twin: Callable[[], Searcher],
        exact: Callable[[Configuration], bool],
        *,
        shape: Callable[[Configuration], TrialShape] = any_shape,
        on_start: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(core, self._take, pauses=True, shape=shape, on_start=on_start)
        self._pool, self._exact = pool, exact
        self._protected: AheadTrial | None = None  # the protected trial, while others train, too
        self._make_twin: Callable[[], Searcher] | None = twin
        self._twin: Searcher | None = None
        self._twin_suggested = 0
        self._foreseen: dict[int, RemoteTraining] = {}
        self._schedulers: dict[str, Scheduler] = {}  # of cohorts that have not begun

    def close(self) -> None:
        super().close()
        self._forget_foreseen()

    # Decisions, as `TrialLoop` takes them.

    def _ask(self) -> LocalTrial | None:
        trial = super()._ask()
        if isinstance(trial, AheadTrial) and (training := self._foreseen.pop(trial.number, None)) is not None:
            if training.beginning.config == trial.config:
                trial.training = training
            else:  # the study's searcher has learned from results
                training.drop()
                self._forget_foreseen()
        return trial

    def _take(self, trial: LocalTrial) -> Step | None:
        """Return the next step of a trial, which a helper has trained or trains now."""
        assert isinstance(trial, AheadTrial)
        return trial.receive(self._pool.take(trial.training_in(self._pool, self._exact), lambda: self._plan(trial)))

    def _advance(self, trial: LocalTrial) -> None:
        assert isinstance(trial, AheadTrial)
        alone = self.core.rules or not self.core.cohort(trial).population
        if trial.in_cohort or alone:
            super()._advance(trial)
            return
        # Nothing depends on the protected trial's score: a population's algorithm learns nothing, and there is no
        # rule. Its end is the first one all the same.
        self._begin(trial)
        self.core.reserve_end(trial)
        self._protected = trial

    def _end(self, trial: LocalTrial) -> None:
        self._end_protected()
        super()._end(trial)

    def _end_waiting(self) -> None:
        self._end_protected()
        super()._end_waiting()

    def _end_protected(self) -> None:
        trial, self._protected = self._protected, None
        if trial is None:
            return
        while (step := self._pull(trial)) is not None:
            if self.core.step(trial, step) == STOP:
                break
        self.core.complete(trial)

    # What is trained ahead of them.

    def _plan(self, needed: AheadTrial) -> Iterator[Demand]:
        """Return the steps that will be needed, the most urgent first. Order and size change the time only."""
        trials: list[LocalTrial] = [needed] if self._protected in (None, needed) else [self._protected, needed]
        for cohort in self.core.cohorts.values():
            trials += [trial for trial in cohort.trials if trial is not needed and not self.core.is_full(trial)]
        ahead = ((trial, self._steps_ahead(trial)) for trial in trials)
        demands = [self._demand(trial, max(1, steps)) for trial, steps in ahead if steps > 0 or trial is needed]
        yield from demands
        idle = self._pool.size - sum(not demand.met for demand in demands)
        yield from self._look_ahead(idle)

    def _demand(self, trial: LocalTrial, steps: int) -> Demand:
        assert isinstance(trial, AheadTrial)
        training = trial.training_in(self._pool, self._exact)
        return Demand(training, training.taken + steps, save=trial.in_cohort)

    def _steps_ahead(self, trial: LocalTrial) -> int:
        to_end = self._to_end(trial)
        if not trial.in_cohort:
            return to_end
        return int(min(self.core.cohort(trial).steps_until_pause(trial), to_end))

    def _to_end(self, trial: LocalTrial) -> int:
        done = trial.steps[-1].step if trial.steps else 0
        return int(min(trial.shape.full_steps, MOST_STEPS)) - done

    def _look_ahead(self, idle: int) -> Iterator[Demand]:
        """Return the first steps of trials that are not suggested yet, for idle helpers."""
        for number, training in list(self._foreseen.items()):
            if not (demand := self._first_steps(number, training)).met:
                idle -= 1
                yield demand
        while idle > 0 and len(self._foreseen) < 2 * self._pool.size and (found := self._next_foreseen()) is not None:
            number, training = found
            idle -= 1
            yield self._first_steps(number, training)

    def _next_foreseen(self) -> tuple[int, RemoteTraining] | None:
        if self._twin is None and self._make_twin is not None:
            make, self._make_twin = self._make_twin, None
            self._twin = make()
        while self._twin is not None and self._twin_suggested < self.core.n_trials and not self.core.closed_by:
            number = self._twin_suggested
            self._twin_suggested += 1
            try:
                config = self._twin.suggest(f"{number:05d}")
            except Exception:  # the study's own searcher says it, when it comes to that
                config = None
            if not isinstance(config, dict):
                self._twin = None
            elif number >= self.core.suggested:
                training = self._foreseen[number] = self._pool.begin(
                    TrainingStart(number, dict(config), exact=self._exact(config))
                )
                return number, training
        return None

    def _first_steps(self, number: int, training: RemoteTraining) -> Demand:
        config = training.beginning.config
        scheduler = self._scheduler(config)
        steps = min(scheduler.steps_of_next(number - self.core.suggested), self._shape(config).full_steps, MOST_STEPS)
        return Demand(training, int(steps), save=True)

    def _scheduler(self, config: Configuration) -> Scheduler:
        family = self.core.family(config)
        if family in self.core.cohorts:
            return self.core.cohorts[family].scheduler
        if family not in self._schedulers:
            self._schedulers[family] = self.core.scheduler_for(config)
        return self._schedulers[family]

    def _forget_foreseen(self) -> None:
        self._twin = self._make_twin = None
        for training in self._foreseen.values():
            training.drop()
        self._foreseen.clear()

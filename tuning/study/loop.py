"""A study in this process, one trial after another, without a cluster and without Ray's controller."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NoReturn

from schedulers.protocols import Scheduler
from tuning.errors import StudyError
from tuning.steps import Step
from tuning.study.core import BASELINE_ONLY, CONTINUE, STOP, StudyCore, one_family, same_config
from tuning.study.interfaces import Configuration, Rule, Searcher
from tuning.study.local_trial import LocalTrial, Start
from tuning.study.trial import ANY_SHAPE, RUNNING, EarlierTrial, TrialShape, Verdict, first_gap


class ReplayError(StudyError):
    """Replaying a study's records does not give the same search again; the study has to run anew."""


def any_shape(_config: Configuration) -> TrialShape:
    """The last step counts, and a trial is as long as the longest one of its race."""
    return ANY_SHAPE


class TrialLoop(Iterator[LocalTrial]):
    """The trials of one study, in the order in which they end.

    searcher: a Ray `Searcher`, its space already set.
    scheduler_for: a new scheduler for the race of a configuration; called once per family, since rungs are only
        compared within one. It never pauses a trial; for those that do, see `tuning.study.interleaved`.
    start: (config, number, state) -> generator of `Step`; see `tuning.study.local_trial.Start`.
    n_trials: at most this many.
    metric, mode: key and direction ("max", "min") of the objective towards searcher and schedulers.
    family, shape: of a configuration.
    protect: numbers of trials that are never stopped early.
    replay: the study's first trials as recorded by an earlier attempt. They are suggested, decided and told again,
        without being run or yielded.
    rules: built stopping rules (`schedulers.stopping`).
    on_start: called with a trial's number just before its training starts.

    Iterating raises `StudyError` when the searcher or a scheduler raises, and `ReplayError` when a replay takes another
    way than recorded. An exception in training only fails its trial.
    """

    #: What plays a trial's part.
    trial_class: type[LocalTrial] = LocalTrial

    def __init__(
        self,
        searcher: Searcher,
        scheduler_for: Callable[[Configuration], Scheduler],
        start: Start,
        *,
        n_trials: int,
        metric: str,
        mode: str,
        family: Callable[[Configuration], str] = one_family,
        shape: Callable[[Configuration], TrialShape] = any_shape,
        protect: frozenset[int] = BASELINE_ONLY,
        replay: Sequence[EarlierTrial] = (),
        rules: Sequence[Rule] = (),
        on_start: Callable[[int], None] | None = None,
    ) -> None:
        self.core = StudyCore(
            searcher,
            scheduler_for,
            self.trial_class,
            n_trials=n_trials,
            metric=metric,
            mode=mode,
            family=family,
            rules=rules,
            protect=protect,
        )
        self._start, self._shape, self._on_start = start, shape, on_start
        known = {trial.number: trial for trial in replay}
        # What comes after a gap was suggested knowing the missing trial: it has to run again.
        self._earlier = deque(known[number] for number in range(first_gap(known)))
        self._run = self._trials()

    def __next__(self) -> LocalTrial:
        return next(self._run)

    def close(self) -> None:
        """End between two trials; suspended ones are dropped without being told to anybody."""
        self._run.close()
        for race in self.core.races.values():
            for trial in race.trials:
                trial.release()

    def _trials(self) -> Generator[LocalTrial, None, None]:
        while (trial := self._ask()) is not None:
            self.core.enter(trial)
            if self._earlier:
                self._run_again(trial, self._earlier.popleft())
                continue
            self._run_through(trial)
            while self.core.outbox:
                yield self.core.outbox.popleft()

    def _ask(self) -> LocalTrial | None:
        trial = self.core.ask()
        if trial is not None:
            trial.shape = self._shape(trial.config)
        elif not self.core.closed_by:
            self.core.exhaust()  # nothing runs whose end could bring the searcher to suggest something
        return trial

    def _begin(self, trial: LocalTrial) -> None:
        """A trial's training is about to start."""
        trial.started = time.time()
        trial.status = RUNNING
        if self._on_start is not None:
            self._on_start(trial.number)

    def _run_through(self, trial: LocalTrial) -> None:
        """Run a trial to its end."""
        self._begin(trial)
        core = self.core
        while (step := self._pull(trial)) is not None:
            decision = core.step(trial, step)
            if decision == STOP:
                break
            if decision != CONTINUE:
                scheduler = type(core.race(trial).scheduler).__name__
                raise StudyError(f"{scheduler} paused trial {trial.number}, but trials run one after another here.")
        core.end(trial)

    def _pull(self, trial: LocalTrial) -> Step | None:
        """The next step of a trial's training; None at its end."""
        return trial.pull(self._start)

    def _run_again(self, trial: LocalTrial, earlier: EarlierTrial) -> None:
        """Feed a recorded trial to searcher and scheduler as if it had just run."""
        if not same_config(trial.config, earlier.config):
            self._differs(trial, f"was recorded with {dict(earlier.config)}, now comes with {trial.config}")
        for rule in self.core.rules:
            rule.on_replay(earlier.seconds)
        trial.status = RUNNING
        for position, step in enumerate(earlier.steps, 1):
            trial.steps.append(Step(step.step, step.score))
            if self.core.step_again(trial, step) != STOP:
                continue
            if position < len(earlier.steps):
                self._differs(trial, f"went on after step {step.step}, now its scheduler stops it there")
        trial.verdict = Verdict(earlier.state)
        self.core.end(trial)
        if earlier.spent_seconds is not None:
            self.core.spent_seconds = earlier.spent_seconds
        self.core.outbox.clear()

    def _differs(self, trial: LocalTrial, how: str) -> NoReturn:
        raise ReplayError(
            f"trial {trial.number} {how}. The definition, the data or a library has changed since; run the study anew."
        )

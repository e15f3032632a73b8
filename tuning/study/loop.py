"""A study in this process, one trial after another, without a cluster and without Ray's controller."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NoReturn, TypeAlias

from tuning.errors import StudyError
from tuning.steps import Step
from tuning.study.core import CONTINUE, STOP, StudyCore, same_config
from tuning.study.interfaces import Configuration
from tuning.study.local_trial import LocalTrial, StartTraining
from tuning.study.trial import ANY_SHAPE, RUNNING, EarlierTrial, TrialShape, Verdict, first_gap

#: Trains a trial's next step; None at the end of its training.
Pull: TypeAlias = Callable[[LocalTrial], Step | None]


class ReplayError(StudyError):
    """Replaying a study's records does not give the same search again; the study has to run anew."""


def any_shape(_config: Configuration) -> TrialShape:
    """The last step counts, and a trial is as long as the longest one of its race."""
    return ANY_SHAPE


def in_process(start: StartTraining) -> Pull:
    """Training in this process: each trial is a generator that `start` makes."""
    return lambda trial: trial.pull(start)


class TrialLoop(Iterator[LocalTrial]):
    """The trials of one study, in the order in which they end.

    core: takes the study's decisions. Its schedulers never pause a trial; for those that do, see
        `tuning.study.interleaved`.
    pull: trains a trial's next step.
    shape: of a configuration.
    replay: the study's first trials as recorded by an earlier attempt. They are suggested, decided and told again,
        without being run or yielded.
    on_start: called with a trial's number just before its training starts.

    Iterating raises `StudyError` when the searcher or a scheduler raises, and `ReplayError` when a replay takes another
    way than recorded. An exception in training only fails its trial.
    """

    def __init__(
        self,
        core: StudyCore[LocalTrial],
        pull: Pull,
        *,
        shape: Callable[[Configuration], TrialShape] = any_shape,
        replay: Sequence[EarlierTrial] = (),
        on_start: Callable[[int], None] | None = None,
    ) -> None:
        self.core, self._pull, self._shape, self._on_start = core, pull, shape, on_start
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
